import { defineConfig } from '@playwright/test';

// Started by the tests of the collector and of twixt, which have a collector running at TWIXT_URL.
export default defineConfig({
  testDir: 'tests',
  outputDir: '../target/dashboard/results',
  reporter: 'line',
  workers: 1,
  retries: 0,
  timeout: 40_000,
  expect: { timeout: 15_000 },
  use: {
    baseURL: process.env.TWIXT_URL,
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: process.env.TWIXT_CHROMIUM,
      // Without a sandbox, since tests may run as root, which Chromium refuses otherwise. Only our own pages are loaded.
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    },
  },
});
