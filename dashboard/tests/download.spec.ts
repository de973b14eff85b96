// An incident is found on the page of a segment of `twixt demo --seed 1`, and downloaded.

import { writeFileSync } from 'node:fs';
import { expect, numbersOf, test } from './page.ts';

test('a button downloads what the page of a segment rests on', async ({ page, request }) => {
  const { range } = await (await request.get('/v1/segments')).json();
  const text = (ns: number) => new Date(ns / 1e6).toISOString();
  // Whole seconds, which the first minute has: epochs of a second that are estimated.
  const time = `start=${text(range.start_ns)}&end=${text(range.start_ns + 50e9)}`;
  await page.goto(`/#/segment?segment=bru-par:par-bru&class=backup&${time}`);
  await expect(page.getByRole('img', { name: 'Heat map' })).toBeVisible();
  const numbers = await numbersOf(page);
  expect(numbers.join()).toContain('ms');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download bundle' }).click()]);
  expect(download.suggestedFilename()).toMatch(/^twixt-bru-par-par-bru-\d{4}-\d\d-\d\dT\d{6}Z\.twxb$/);
  await download.saveAs(process.env.TWIXT_BUNDLE!);
  writeFileSync(process.env.TWIXT_NUMBERS!, JSON.stringify(numbers));
  await expect(page.getByRole('button', { name: 'Download bundle' })).toBeEnabled();
});

test('what cannot be packed says why', async ({ page, allowed }) => {
  allowed.complaints.push(/400/);
  await page.goto('/#/segment?segment=bru-par:par-bru&start=2020-01-01T00:00:00Z&end=2020-01-01T01:00:00Z');
  await page.getByRole('button', { name: 'Download bundle' }).click();
  await expect(page.getByText('nothing is stored of that segment and time')).toBeVisible();
});
