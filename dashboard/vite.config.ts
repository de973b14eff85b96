import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// Names without hashes: the collector embeds each file by its name, and lets browsers ask whether it has
// changed. The same sources give the same bytes, which a test holds.
export default defineConfig({
  base: './',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      output: {
        entryFileNames: 'dashboard.js',
        assetFileNames: 'dashboard[extname]',
        codeSplitting: false,
      },
    },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:9411' } },
});
