// The dashboard against a collector with a segment of one epoch, and with a path that was measured from end to end as well.

import { examine, expect, inked, test, value } from './page.ts';

const time = () => `start=${process.env.TWIXT_START}&end=${process.env.TWIXT_END}`;

test('one epoch is seen, with its interval', async ({ page }) => {
  await page.goto(`/#/segment?segment=lon-out:par-in&${time()}`);
  await expect(page.locator('dl div', { hasText: 'mean' }).locator('dd')).toContainText('±');
  for (const name of ['Heat map of delay over time', 'Percentiles of delay over time', 'Loss over time', 'Mean delay over time']) {
    const picture = page.getByRole('img', { name });
    await expect(picture.locator('canvas')).toBeVisible();
    const share = await inked(picture);
    expect(share, name).toBeGreaterThan(0);
    // One of sixty seconds: it does not fill the picture.
    expect(share, name).toBeLessThan(0.05);
  }
  await examine(page, 'one-epoch');
  await page.goto(`/#/overview?${time()}`);
  await expect(page.getByRole('region', { name: 'Matrix' })).toContainText('par-in');
});

test('a path shows what its segments do not explain', async ({ page }) => {
  await page.goto(`/#/path?from=fra&to=lon&${time()}`);
  await expect(page.locator('tbody tr')).toHaveCount(2);
  const cells = (name: string) => page.locator('tfoot tr', { hasText: name }).locator('td');
  // 4 ms and 5 ms, and 10 ms from end to end: 1 ms is inside the place between. Of loss, 0.1 % on each and 1 % in all.
  expect(value(await cells('sum of the segments').nth(1).textContent())).toBeCloseTo(9, 1);
  expect(value(await cells('end to end').nth(1).textContent())).toBeCloseTo(10, 1);
  expect(value(await cells('unexplained rest').nth(1).textContent())).toBeCloseTo(1, 1);
  expect(value(await cells('unexplained rest').nth(4).textContent())).toBeCloseTo(0.8, 1);
  await expect(cells('unexplained rest').nth(3)).toContainText('of the variance');
  await examine(page, 'path-rest');
});
