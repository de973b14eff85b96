// The overview against a collector that has stored a day and more: what changed since yesterday.

import { examine, expect, test } from './page.ts';

test('what changed since yesterday is named, and what did not is not', async ({ page }) => {
  await page.goto('/#/overview?range=1h');
  const changes = page.locator('section', { has: page.getByRole('heading', { name: 'What changed' }) });
  await expect(changes).toContainText('against the same time yesterday');
  await expect(changes.getByRole('row', { name: /slower-out/ }).first()).toBeVisible();
  await expect(changes.getByRole('row', { name: /lossy-out.*loss/ })).toBeVisible();
  await expect(changes).not.toContainText('steady-out');
  // The newest minute is not over: nothing is known of it, and nothing is said.
  const now = page.locator('section', { has: page.getByRole('heading', { name: 'Worst now' }) });
  await expect(now.getByText('Nothing is known of the last minute.')).toHaveCount(2);
  await examine(page, 'yesterday');
});
