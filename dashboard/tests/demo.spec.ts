// The dashboard against `twixt demo --seed 1`, which queues backup traffic from bru to par, and then loses packets from ams to bru.

import type { APIRequestContext } from '@playwright/test';

import { examine, expect, inked, test, value } from './page.ts';

/** The minute with the first two incidents: the first that is stored. */
async function firstMinute(request: APIRequestContext): Promise<string> {
  const { range } = await (await request.get('/v1/segments')).json();
  const text = (ns: number) => new Date(ns / 1e6).toISOString();
  return `start=${text(range.start_ns)}&end=${text(range.start_ns + 60e9)}`;
}

const QUEUE = { segment: 'bru-par → par-bru', path: 'bru-par:par-bru', class: 'backup' };

test('the overview shows every segment, and where the incidents are', async ({ page, request }) => {
  await page.goto(`/#/overview?${await firstMinute(request)}`);
  const rows = page.getByRole('region', { name: 'Matrix' }).locator('tbody tr');
  await expect(rows).toHaveCount(6);
  await expect(page.locator('td', { hasText: '±' }).first()).toBeVisible();
  const queue = rows.filter({ hasText: 'bru-par' }).locator('td').first();
  expect(value(await queue.textContent())).toBeGreaterThan(30);
  await expect(queue).toContainText('alerts in this time: ');
  await expect(rows.filter({ hasText: 'fra-zrh' })).not.toContainText('alerts in this time');
  await expect(page.getByLabel('Map of the network').locator('a.worse')).toHaveCount(2);
  const calm = rows.filter({ hasText: 'fra-zrh' }).locator('td').first();
  expect(value(await calm.textContent())).toBeLessThan(10);
  await expect(page.getByLabel('Map of the network').getByRole('link')).toHaveCount(6);
  await expect(page.getByLabel('Data quality').getByText('all 12 report')).toBeVisible();
  await examine(page, 'overview');
  await page.getByRole('button', { name: 'loss', exact: true }).click();
  await expect(page).toHaveURL(/show=loss/);
  const losing = rows.filter({ hasText: 'ams-bru' }).locator('td');
  for (const cell of await losing.all()) expect(value(await cell.textContent())).toBeGreaterThan(0.2);
});

test('the way from the overview leads to the segment and its class', async ({ page, request }) => {
  await page.goto(`/#/overview?${await firstMinute(request)}`);
  await page.getByRole('region', { name: 'Matrix' }).locator('tbody tr').filter({ hasText: 'bru-par' }).getByRole('link').first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(`${QUEUE.segment}, ${QUEUE.class}`);
  await expect(page).toHaveURL(/class=backup/);
});

test('a segment shows its delays, and can be zoomed with mouse and keys', async ({ page, request }) => {
  await page.goto(`/#/segment?segment=${QUEUE.path}&class=${QUEUE.class}&${await firstMinute(request)}`);
  const tail = page.locator('dl div', { hasText: '99th percentile' }).locator('dd');
  await expect(tail).toContainText('ms');
  expect(value(await tail.textContent())).toBeGreaterThan(30);
  for (const name of ['Heat map of delay over time', 'Percentiles of delay over time', 'Loss over time', 'Mean delay over time']) {
    const picture = page.getByRole('img', { name });
    await expect(picture.locator('canvas')).toBeVisible();
    expect(await inked(picture), name).toBeGreaterThan(0.001);
  }
  await expect(page.getByRole('cell', { name: 'lda', exact: true })).toBeVisible();
  await examine(page, 'segment');
  const whole = page.url();
  const box = (await page.getByRole('img', { name: 'Heat map' }).locator('.u-over').boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await expect(page).not.toHaveURL(whole);
  await expect(page.getByRole('button', { name: 'Back to live' })).toBeVisible();
  const zoomed = page.url();
  await page.getByRole('button', { name: 'Zoom out' }).press('Enter');
  await expect(page).not.toHaveURL(zoomed);
  await page.goBack();
  await expect(page).toHaveURL(zoomed);
  await page.getByRole('button', { name: 'Back to live' }).click();
  await expect(page.getByText('live, UTC')).toBeVisible();
});

test('points and help are there, by keyboard alone', async ({ page }) => {
  await page.goto('/');
  await page.getByRole('link', { name: 'Points', exact: true }).focus();
  await page.keyboard.press('Enter');
  await expect(page.locator('tbody tr')).toHaveCount(12);
  await examine(page, 'points');
  await page.getByRole('link', { name: 'How to read' }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'How to read these pages' })).toBeVisible();
  await examine(page, 'help');
});

test('what is known stays while the collector does not answer', async ({ page, context, allowed }) => {
  allowed.complaints.push(/ERR_INTERNET_DISCONNECTED/);
  await page.goto('/#/overview?range=5m');
  await expect(page.getByRole('region', { name: 'Matrix' })).toBeVisible();
  await context.setOffline(true);
  await expect(page.getByText('The collector does not answer.')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Matrix' })).toBeVisible();
  await context.setOffline(false);
  await expect(page.getByText('The collector does not answer.')).toBeHidden();
});

test('a path shows which segment added the delay', async ({ page, request }) => {
  await page.goto(`/#/path?from=bru&to=mil&class=backup&${await firstMinute(request)}`);
  await expect(page.locator('tbody tr')).toHaveCount(3);
  await expect(page.getByText('Largest part:')).toContainText(QUEUE.segment);
  await expect(page.locator('tbody tr').first().locator('td').nth(2)).toContainText('±');
  await expect(page.getByText('not measured: there is no segment')).toBeVisible();
  await examine(page, 'path');
  await page.getByLabel('From').selectOption('ams');
  await expect(page).toHaveURL(/from=ams/);
  await page.getByLabel('to', { exact: true }).selectOption('bru');
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await page.getByLabel('From').selectOption('mil');
  await expect(page.getByRole('heading', { name: 'No segments lead from here to there' })).toBeVisible();
});

test('flows are sorted, filtered and copied', async ({ page, request, context }) => {
  // Pages of many rows take axe long on a busy machine.
  test.setTimeout(120_000);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`/#/flows?segment=${QUEUE.path}&class=${QUEUE.class}&${await firstMinute(request)}`);
  const rows = page.locator('tbody tr');
  await expect(rows.first()).toContainText('tcp');
  const column = async (number: number) => (await rows.locator(`td:nth-child(${number})`).allTextContents()).map(value).filter(Number.isFinite);
  const means = await column(3);
  expect(means.length).toBeGreaterThan(10);
  // Values are rounded as their intervals allow, so that neighbours may seem to be in the wrong order.
  means.slice(1).forEach((mean, at) => expect(mean).toBeLessThanOrEqual(1.1 * means[at]!));
  expect(means[0]).toBeGreaterThan(3 * means.at(-1)!);
  await examine(page, 'flows');
  await page.getByRole('button', { name: 'packets' }).click();
  await expect(page).toHaveURL(/sort=packets/);
  const packets = (await rows.locator('td:nth-child(2)').allTextContents()).map((text) => Number(text.replace(/\D/g, '')));
  expect(packets).toEqual([...packets].sort((one, other) => other - one));
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toMatch(/^curl '?http.*\/v1\/flows\?segment=bru-par%3Apar-bru&class=backup/);
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }));
  await page.getByRole('button', { name: 'Copied' }).click();
  await expect(page.getByText('Select the text: curl')).toBeVisible();
  await page.getByLabel('Filter').fill('udp');
  await expect(page.getByText('No flow passes the filter.')).toBeVisible();
  await page.getByLabel('Filter').fill('dst port');
  await expect(page.getByText('expected a value at the end')).toBeVisible();
  await page.getByLabel('Filter').fill('dst port 873');
  await expect(rows.first()).toContainText(':873');
  await page.getByLabel('At least').fill('6');
  await expect(page).toHaveURL(/min=64/);
  await expect(page.getByText('At least 64 packets')).toBeVisible();
});

test('one flow is opened, examined, copied and closed', async ({ page, request, context }) => {
  test.setTimeout(120_000);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`/#/flows?segment=${QUEUE.path}&class=${QUEUE.class}&min=64&${await firstMinute(request)}`);
  const rows = page.locator('tbody tr');
  await rows.first().getByRole('link').click();
  const one = page.getByRole('region', { name: 'One flow' });
  await expect(one.getByText('packets, mean delay')).toContainText('±');
  expect(await inked(one.getByRole('img', { name: 'Mean delay over time' }))).toBeGreaterThan(0);
  await expect(page).toHaveURL(/flow=tcp/);
  await examine(page, 'one-flow');
  await page.getByRole('button', { name: 'Copy as command' }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/--by flow --scope 'tcp .*' --start/);
  await page.reload();
  await expect(one.getByText('packets, mean delay')).toBeVisible();
  await one.getByRole('link', { name: 'Close this flow' }).click();
  await expect(one).toBeHidden();
  await expect(page).not.toHaveURL(/flow=tcp/);
});

test('alerts name the segments of the incidents', async ({ page }) => {
  await page.goto('/#/alerts');
  const changes = page.locator('section', { hasText: 'What changed' }).locator('tbody tr');
  await expect(changes.filter({ hasText: 'slow' }).filter({ hasText: QUEUE.segment }).filter({ hasText: 'raised' }).first()).toBeVisible();
  await expect(changes.filter({ hasText: 'lossy' }).filter({ hasText: 'ams-bru' }).first()).toBeVisible();
  await examine(page, 'alerts');
  await expect(changes.getByRole('button')).toHaveCount(0);
  await changes.filter({ hasText: QUEUE.segment }).filter({ hasText: 'raised' }).getByRole('link').last().click();
  await expect(page.getByRole('heading', { name: 'Alerts in this time' })).toBeVisible();
});

test('an alert is acknowledged and silenced by a button', async ({ page }) => {
  // One that stands as raised, whatever the demo does by now: the collector's answer is completed by hand.
  const sent: unknown[] = [];
  const marks: Record<string, unknown> = { acknowledged: null, silenced: null };
  await page.route('**/v1/alerts', async (route) => {
    const response = await route.fetch();
    const document = await response.json();
    const standing = document.standing.slice(0, 1).map((of: object) => ({ ...of, state: 'raised', ...marks }));
    await route.fulfill({ response, json: { ...document, standing } });
  });
  page.on('request', (request) => request.method() === 'POST' && sent.push(request.postDataJSON()));
  await page.goto('/#/alerts');
  const raised = page.locator('section', { hasText: 'Raised now' });
  const answered = page.waitForResponse('**/v1/alerts/acknowledge');
  await raised.getByRole('button', { name: 'Acknowledge' }).click();
  const acknowledged = await (await answered).json();
  expect(acknowledged.acknowledged.by).toBe('anybody');
  marks.acknowledged = acknowledged.acknowledged;
  await expect(raised.getByText('acknowledged by anybody')).toBeVisible();
  const silenced = page.waitForResponse('**/v1/alerts/silence');
  await raised.getByRole('button', { name: 'Silence for 1 h' }).click();
  marks.silenced = (await (await silenced).json()).silenced;
  await expect(raised.getByText('no messages until')).toBeVisible();
  const ended = page.waitForResponse('**/v1/alerts/silence');
  await raised.getByRole('button', { name: 'End silence' }).click();
  expect((await (await ended).json()).silenced).toBeNull();
  expect(sent).toMatchObject([{ acknowledged: true }, { seconds: 3600 }, { seconds: 0 }]);
  await page.unrouteAll({ behavior: 'wait' });
});
