// The dashboard against a collector that asks for a token, and whose points have names that try to be more than names.

import { examine, expect, test } from './page.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

test('a token is asked for, refused if wrong, and forgotten with the tab', async ({ page, context, allowed, baseURL }) => {
  allowed.complaints.push(/401/);
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'asks for a token' })).toBeVisible();
  await examine(page, 'login');
  await page.getByLabel('Token of a reader').fill('wrong');
  await page.getByRole('button', { name: 'Show the dashboard' }).click();
  await expect(page.getByText('does not accept this token')).toBeVisible();
  await page.getByLabel('Token of a reader').fill(process.env.TWIXT_TOKEN!);
  await page.getByRole('button', { name: 'Show the dashboard' }).click();
  await expect(page.getByRole('region', { name: 'Matrix' })).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(process.env.TWIXT_TOKEN!);
  const other = await context.newPage();
  await other.goto(`${baseURL}/`);
  await expect(other.getByRole('heading', { name: 'asks for a token' })).toBeVisible();
  await other.close();
  await page.getByRole('button', { name: 'Forget token' }).click();
  await expect(page.getByRole('heading', { name: 'asks for a token' })).toBeVisible();
});

test('hostile names are text on every page', async ({ page }) => {
  await page.addInitScript((token) => sessionStorage.setItem('twixt-token', token), process.env.TWIXT_TOKEN!);
  page.on('dialog', () => {
    throw new Error('a name was run');
  });
  await page.goto('/');
  await expect(page.getByRole('region', { name: 'Matrix' })).toContainText(HOSTILE);
  await examine(page, 'hostile-overview');
  await page.getByRole('region', { name: 'Matrix' }).getByRole('link').first().click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText(HOSTILE);
  await expect(page.getByRole('heading', { name: 'What this rests on' })).toBeVisible();
  await examine(page, 'hostile-segment');
  await page.goto('/#/points');
  await expect(page.locator('tbody')).toContainText(HOSTILE);
  await examine(page, 'hostile-points');
  await page.goto('/#/path');
  await expect(page.locator('tbody')).toContainText(HOSTILE);
  await page.goto('/#/flows');
  await expect(page.getByRole('heading', { name: 'No flow is known' })).toBeVisible();
  await expect(page.getByLabel('Segment')).toContainText(HOSTILE);
  await examine(page, 'hostile-flows');
  expect(await page.locator('img').count()).toBe(1);
});

test('a segment that is not known is not an error', async ({ page }) => {
  await page.addInitScript((token) => sessionStorage.setItem('twixt-token', token), process.env.TWIXT_TOKEN!);
  await page.goto('/#/segment?segment=no:where');
  await expect(page.getByRole('heading', { name: 'This segment is not known' })).toBeVisible();
});

test('a token that is no longer valid is asked for again, and the page is where it was', async ({ page, allowed }) => {
  allowed.complaints.push(/401/);
  const token = process.env.TWIXT_TOKEN!;
  await page.goto('/#/overview?show=loss&range=5m');
  await page.getByLabel('Token of a reader').fill(token);
  await page.getByRole('button', { name: 'Show the dashboard' }).click();
  await expect(page.getByRole('region', { name: 'Matrix' })).toBeVisible();
  // As if the collector had forgotten it: the next question shows another.
  await page.evaluate(() => sessionStorage.setItem('twixt-token', 'a-token-of-yesterday'));
  await expect(page.getByText('does not accept this token')).toBeVisible({ timeout: 60_000 });
  await expect(page.getByRole('region', { name: 'Matrix' })).toBeHidden();
  await page.getByLabel('Token of a reader').fill(token);
  await page.getByRole('button', { name: 'Show the dashboard' }).click();
  await expect(page.getByRole('region', { name: 'Matrix' })).toBeVisible();
  await expect(page).toHaveURL(/show=loss&range=5m/);
});
