/**
 * Writes `docs/settings.md` from the settings table; with `--check` it only tells whether the page is current
 * (exit code 1 when it is not).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { settingsReference } from '../src/config/index.ts'

const page = new URL('../docs/settings.md', import.meta.url)

function current(): string {
  try {
    return readFileSync(page, 'utf8')
  } catch {
    return ''
  }
}

if (!process.argv.includes('--check')) {
  writeFileSync(page, settingsReference())
} else if (current() !== settingsReference()) {
  console.error('docs/settings.md is not current: run `node scripts/settings-reference.ts`')
  process.exitCode = 1
}
