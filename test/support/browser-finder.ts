import { existsSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { installBinaries } from './binaries.ts'
import { fetchDebianChromium } from './debian-chromium.ts'

const INSTALLED = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
] as const

/** Where Playwright keeps the browsers that it downloaded, and what they are called there. */
function ofPlaywright(): readonly string[] {
  const folder =
    process.env.PLAYWRIGHT_BROWSERS_PATH ??
    join(homedir(), process.platform === 'darwin' ? 'Library/Caches/ms-playwright' : '.cache/ms-playwright')
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter(name => name.startsWith('chromium'))
    .sort()
    .reverse()
    .flatMap(name => [
      join(folder, name, 'chrome-linux/chrome'),
      join(folder, name, 'chrome-linux/headless_shell'),
      join(folder, name, 'chrome-mac/Chromium.app/Contents/MacOS/Chromium'),
    ])
}

/** `@sparticuz/chromium` is a Chromium inside an npm package, for x64 Linux only. */
async function ofNpm(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  // Makes the package bring its own system libraries as well.
  process.env.AWS_EXECUTION_ENV ??= 'AWS_Lambda_nodejs22.x'
  const entry = join(installBinaries('chromium', '@sparticuz/chromium'), 'build/index.js')
  const { default: chromium }: { default: { executablePath(): Promise<string> } } = await import(
    pathToFileURL(entry).href
  )
  return chromium.executablePath()
}

/**
 * The path of a Chromium that runs here: the one named by `CHROMIUM_PATH`, one that is installed, or one that is brought
 * along. Called once, before the tests, because unpacking is not safe to do twice at the same time.
 */
export async function prepareBrowser(): Promise<string> {
  const named = process.env.CHROMIUM_PATH
  if (named !== undefined) {
    if (!existsSync(named))
      throw new Error(`Cannot find a browser: CHROMIUM_PATH is ${named}, which does not exist`)
    return named
  }
  const ignoreInstalled = process.env.TEST_IGNORE_INSTALLED_BROWSERS === 'true'
  const installed = ignoreInstalled ? undefined : [...INSTALLED, ...ofPlaywright()].find(existsSync)
  const found = installed ?? (await ofNpm()) ?? fetchDebianChromium()
  if (found === undefined)
    throw new Error('Cannot find a browser: install Chromium or Chrome, or set CHROMIUM_PATH to one')
  return found
}
