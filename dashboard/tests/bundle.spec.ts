// A bundle that download.spec.ts downloaded, as `twixt view` shows it.

import { readFileSync } from 'node:fs';
import { examine, expect, numbersOf, test } from './page.ts';

test('the page of the segment shows the same numbers, and says what they are of', async ({ page }) => {
  await page.goto('/#/segment?class=backup');
  const note = page.getByRole('region', { name: 'Incident bundle' });
  await expect(note).toContainText('bru-par → par-bru');
  await expect(note).toContainText('for anybody');
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('bru-par → par-bru, backup');
  await expect(page.getByRole('img', { name: 'Heat map' })).toBeVisible();
  const downloaded = JSON.parse(readFileSync(process.env.TWIXT_NUMBERS!, 'utf8'));
  expect(await numbersOf(page)).toEqual(downloaded);
  await expect(page.getByRole('button', { name: 'Download bundle' })).toHaveCount(0);
  await expect(page.getByText('live, UTC')).toHaveCount(0);
  await examine(page, 'bundle-segment');
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await expect(page).toHaveURL(/start=/);
  await page.getByRole('button', { name: 'All of the bundle' }).click();
  await expect.poll(() => numbersOf(page)).toEqual(downloaded);
});

test('flows of the bundle are compared from its raw epochs', async ({ page }) => {
  await page.goto('/#/flows?segment=bru-par:par-bru&class=backup');
  await expect(page.locator('tbody tr').first()).toContainText('ms');
  await examine(page, 'bundle-flows');
});

test('pages of live state say what a bundle does not hold', async ({ page }) => {
  await page.goto('/#/points');
  await expect(page.getByText('A bundle does not hold the state of points')).toBeVisible();
  await expect(page.locator('tbody')).toContainText('not in a bundle');
  await examine(page, 'bundle-points');
  await page.goto('/#/alerts');
  await expect(page.getByRole('heading', { name: 'A bundle does not hold alerts' })).toBeVisible();
  await examine(page, 'bundle-alerts');
  await page.goto('/#/overview');
  await expect(page.getByRole('region', { name: 'Matrix' })).toContainText('bru-par');
  await expect(page.getByLabel('Data quality')).not.toContainText('silent');
  await examine(page, 'bundle-overview');
});
