// What all tests share: a page that must not complain, nor load anything from elsewhere.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test as plain, type Locator, type Page } from '@playwright/test';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PICTURES = '../target/dashboard/screenshots';
/** Where the book has its pictures; they are only renewed when that is asked for. */
const BOOK = process.env.TWIXT_PICTURES && `${process.env.TWIXT_PICTURES}/dashboard`;

/** What the browser says of answers that a test provokes. */
interface Allowed {
  complaints: RegExp[];
}

export const test = plain.extend<{ allowed: Allowed }>({
  allowed: async ({}, use) => use({ complaints: [] }),
  page: async ({ page, baseURL, allowed }, use) => {
    const found: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) found.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => found.push(`error: ${error.message}`));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${baseURL}/`)) found.push(`elsewhere: ${request.url()}`);
    });
    await use(page);
    const unexpected = found.filter((text) => !allowed.complaints.some((known) => known.test(text)));
    expect(unexpected).toEqual([]);
  },
});

export { expect };

/** No serious finding of axe-core, light and dark; and a picture of each, on a desk and on a phone. One of the desk may be for the book. */
export async function examine(page: Page, name: string, isForBook = true): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
      const axe = (globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[] }> } }).axe;
      const { violations } = await axe.run();
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      return serious.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
    });
    expect(found, `${name}, ${colorScheme}`).toEqual([]);
    for (const [device, width] of [['desk', 1280], ['phone', 390]] as const) {
      await page.setViewportSize({ width, height: 800 });
      await page.screenshot({ path: `${PICTURES}/${name}-${device}-${colorScheme}.png`, fullPage: true });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(overflow, `${name} is wider than a ${device}`).toBeLessThanOrEqual(0);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    if (BOOK && isForBook) await page.screenshot({ path: `${BOOK}/${name}-${colorScheme}.jpg`, type: 'jpeg', quality: 70 });
  }
}

/** The first number of a text such as "41.26 ± 0.55 ms", in milliseconds or per cent. */
export function value(text: string | null): number {
  const number = Number.parseFloat((text ?? '').replace(/[^\d.]*/, ''));
  return /µs/.test(text ?? '') ? number / 1000 : number;
}

/** What the page of a segment says in numbers: the tiles at its top. */
export async function numbersOf(page: Page): Promise<string[]> {
  await expect(page.locator('dl.tiles dd').first()).toContainText(/\d/);
  return (await page.locator('dl.tiles > div').allTextContents()).map((text) => text.replace(/\s+/g, ' ').trim());
}

/** The share of a picture that is not background: a picture without data has axes only. */
export async function inked(picture: Locator): Promise<number> {
  return picture.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
    const { width, height } = canvas;
    // Without the axes.
    const [left, top] = [Math.round(width * 0.12), 4];
    const pixels = canvas.getContext('2d')!.getImageData(left, top, width - left - 20, Math.round(height * 0.7)).data;
    let strong = 0;
    for (let at = 3; at < pixels.length; at += 4) if (pixels[at]! > 90) strong += 1;
    return strong / (pixels.length / 4);
  });
}
