// The dashboard while its collector ends: what is known stays, and no page shows what it did not load.

import { expect, test } from './page.ts';

test('what is known stays when the collector is killed', async ({ page, allowed }) => {
  allowed.complaints.push(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
  await page.goto('/#/overview?range=5m');
  const matrix = page.getByRole('region', { name: 'Matrix' });
  await expect(matrix).toBeVisible();
  process.kill(Number(process.env.TWIXT_PID), 'SIGKILL');
  await expect(page.getByText('The collector does not answer.')).toBeVisible();
  await expect(matrix).toBeVisible();
  await page.getByRole('link', { name: 'Points', exact: true }).click();
  await expect(page.getByText('The collector does not answer.')).toBeVisible();
  await expect(page.locator('tbody tr')).toHaveCount(0);
});
