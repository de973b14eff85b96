// The page of round trips, against a collector with a point that asks for names and counts flows, and one that does not.

import { examine, expect, test } from './page.ts';

test('round trips are shown by kind, with the share above a limit', async ({ page }) => {
  await page.goto('/#/round-trips?point=edge');
  const trips = page.getByRole('region', { name: 'Round trips' });
  const row = trips.getByRole('table', { name: 'kind' }).getByRole('row', { name: /^dns/ });
  await expect(row).toContainText('10.0 ms');
  await expect(row).toContainText('12.5 %');
  await expect(trips.getByRole('img', { name: 'Percentiles of round-trip times over time' })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Large flows' })).toContainText('udp 10.0.0.1:4000 > 10.0.0.2:53');
  // The agent does not look for reordering: that is not the same as none.
  await expect(page.getByRole('region', { name: 'Reordering' })).toContainText('Not recorded');
  await examine(page, 'round-trips');
  await page.getByLabel('Share above').selectOption('100');
  await expect(row).toContainText('0 % (0 to');
  await expect(page).toHaveURL(/above=100/);
});

test('a point that records nothing says so, and one that is not known too', async ({ page }) => {
  await page.goto('/#/round-trips?point=up');
  await expect(page.getByRole('region', { name: 'Round trips' })).toContainText('Not recorded');
  await expect(page.getByRole('region', { name: 'Large flows' })).toContainText('Not recorded');
  await examine(page, 'round-trips-not-recorded', false);
  await page.goto('/#/round-trips?point=nowhere');
  await expect(page.getByRole('heading', { name: 'This point is not known' })).toBeVisible();
});
