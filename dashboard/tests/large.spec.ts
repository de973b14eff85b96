// How long the browser works at the pages of a large network: printed, to be read. A test that fails by the
// clock would tell more of the machine than of the pages.

import { type CDPSession, type Page } from '@playwright/test';
import { expect, test } from './page.ts';

/** Processor time of the page's thread so far, of all and of scripts, in milliseconds. */
async function worked(session: CDPSession): Promise<{ all: number; scripts: number }> {
  const { metrics } = await session.send('Performance.getMetrics');
  const of = (name: string) => (metrics.find((metric) => metric.name === name)?.value ?? 0) * 1000;
  return { all: of('TaskDuration'), scripts: of('ScriptDuration') };
}

/** Lets something happen and prints how long the page worked at it, and its longest task, which waits for other programs are part of. */
async function measure(page: Page, name: string, act: () => Promise<unknown>): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.evaluate(() => {
    const global = globalThis as unknown as { longest: number };
    global.longest = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) global.longest = Math.max(global.longest, entry.duration);
    }).observe({ type: 'longtask', buffered: false });
  });
  const before = await worked(session);
  await act();
  // Until what was drawn is on the screen.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const longest = await page.evaluate(() => (globalThis as unknown as { longest: number }).longest);
  const after = await worked(session);
  const task = longest > 0 ? `longest task ${longest.toFixed(0)} ms` : 'no task above 50 ms';
  console.log(`${name}: worked ${(after.all - before.all).toFixed(0)} ms, scripts ${(after.scripts - before.scripts).toFixed(0)} ms, ${task}`);
  await session.detach();
}

test('pages of 200 segments and 10,000 flows', async ({ page }) => {
  test.setTimeout(300_000);
  const go = (hash: string) => page.evaluate((to) => { location.hash = to; }, hash);
  await page.goto('/#/help');
  const matrix = page.getByRole('region', { name: 'Matrix' });
  await measure(page, 'load of Overview, 24 h', async () => {
    await go('#/?range=24h');
    await expect(matrix.locator('tbody tr').nth(199)).toBeVisible({ timeout: 60_000 });
  });
  await measure(page, 'Overview: median for 99th percentile', async () => {
    await page.getByRole('button', { name: 'median' }).click();
    await expect(page.getByRole('button', { name: 'median' })).toHaveAttribute('aria-pressed', 'true');
  });
  await measure(page, 'load of Segment, 24 h', async () => {
    await go('#/segment?segment=r000-out:r001-in&range=24h');
    await expect(page.getByRole('heading', { name: 'What this rests on' })).toBeVisible({ timeout: 60_000 });
  });
  await measure(page, 'Segment: another segment', async () => {
    await page.getByLabel('Segment', { exact: true }).selectOption({ index: 100 });
    await expect(page.getByRole('heading', { level: 1 })).toContainText('r100');
    await expect(page.getByRole('heading', { name: 'What this rests on' })).toBeVisible();
  });
  await measure(page, 'load of Path, 24 h', async () => {
    await go('#/path?range=24h');
    await expect(page.locator('tbody tr').first()).toBeVisible({ timeout: 60_000 });
  });
  await measure(page, 'load of Flows', async () => {
    await go(`#/flows?segment=up:down&start=${process.env.TWIXT_START}&end=${process.env.TWIXT_END}`);
    await expect(page.getByRole('heading', { name: /of 10.000 flows/ })).toBeVisible({ timeout: 60_000 });
  });
  await measure(page, 'Flows: sort by packets', async () => {
    await page.getByRole('columnheader', { name: 'packets' }).getByRole('button').click();
  });
  await measure(page, 'Flows: a filter typed', async () => {
    await page.getByLabel('Filter').fill('src host 10.0.3.7');
  });
});
