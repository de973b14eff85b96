// The dashboard against a collector that has stored nothing.

import { examine, expect, test } from './page.ts';

test('pages say that there is nothing yet', async ({ page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'No estimates yet' })).toBeVisible();
  await examine(page, 'empty');
  await page.goto('/#/segment');
  await expect(page.getByRole('heading', { name: 'No estimates yet' })).toBeVisible();
  await page.goto('/#/flows');
  await expect(page.getByRole('heading', { name: 'No estimates yet' })).toBeVisible();
  await page.goto('/#/path');
  await expect(page.getByRole('heading', { name: 'No estimates yet' })).toBeVisible();
  await page.goto('/#/alerts');
  await expect(page.getByRole('heading', { name: 'No alerts are configured' })).toBeVisible();
  await page.goto('/#/round-trips');
  await expect(page.getByRole('heading', { name: 'No point has reported yet' })).toBeVisible();
  await page.goto('/#/points');
  await expect(page.getByRole('heading', { name: 'No point has reported yet' })).toBeVisible();
});
