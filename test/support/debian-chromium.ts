import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './user-cache.ts'

/** The browser without its windows, which opens a page in a quarter of the time. */
const BROWSER = 'chromium-headless-shell'

/** With what must lie beside it, and a font: a page without glyphs has no widths to test. */
const PACKAGES = [BROWSER, 'chromium-common', 'fonts-liberation'] as const

/**
 * For Linux on arm64, where no npm package holds a Chromium: Debian's package and the libraries that this machine lacks, fetched with
 * apt into a folder of the user's cache. Nothing is installed, and root is not needed. Undefined where there is no apt.
 */
export function fetchDebianChromium(): string | undefined {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) return undefined
  const folder = cacheFolder(`${BROWSER}-${process.arch}`, (work, folder) => {
    download(work)
    unpack(work)
    writeLauncher(work, folder)
  })
  return join(folder, BROWSER)
}

/** Runs apt with separate lists, archives and locks; it does not fetch installed packages again. */
function apt(work: string, ...command: readonly string[]): void {
  const options = [
    `Dir::State=${work}/state`,
    `Dir::State::status=${process.env.TEST_DPKG_STATUS ?? '/var/lib/dpkg/status'}`,
    `Dir::Cache=${work}/cache`,
    'Debug::NoLocking=true',
    'APT::Sandbox::User=',
    'Acquire::Retries=3',
    'Acquire::http::Timeout=30',
  ]
  run('apt-get', ...options.flatMap(option => ['-o', option]), '-qq', '-y', ...command)
}

function run(command: string, ...args: readonly string[]): void {
  const done = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] })
  if (done.status !== 0)
    throw new Error(
      `Cannot fetch a browser: ${command} failed. Install Chromium, or set CHROMIUM_PATH to one\n${done.error?.message ?? done.stderr}`,
    )
}

function download(work: string): void {
  for (const name of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(work, name), { recursive: true })
  apt(work, 'update')
  apt(work, 'install', '--download-only', '--no-install-recommends', '--reinstall', ...PACKAGES)
}

function unpack(work: string): void {
  const archives = join(work, 'cache/archives')
  const packages = readdirSync(archives).filter(name => name.endsWith('.deb'))
  if (!packages.some(name => name.startsWith(`${BROWSER}_`)))
    throw new Error(
      `Cannot fetch a browser: apt has no ${BROWSER}. Install Chromium, or set CHROMIUM_PATH to one`,
    )
  for (const name of packages) run('dpkg-deb', '-x', join(archives, name), join(work, 'root'))
  for (const name of ['state', 'cache']) rmSync(join(work, name), { recursive: true })
}

/** Starts the browser with the fetched libraries and fonts first. */
function writeLauncher(work: string, folder: string): void {
  const root = join(folder, 'root')
  const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
  const libraries = [
    `usr/lib/${triplet}`,
    `lib/${triplet}`,
    `usr/lib/${triplet}/pulseaudio`,
    'usr/lib/chromium',
  ]
  writeFileSync(
    join(work, 'fonts.conf'),
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>${root}/usr/share/fonts</dir><cachedir>${folder}/font-cache</cachedir></fontconfig>
`,
  )
  writeFileSync(
    join(work, BROWSER),
    `#!/bin/sh
export LD_LIBRARY_PATH="${libraries.map(name => join(root, name)).join(':')}"
export FONTCONFIG_FILE="${folder}/fonts.conf"
exec "${root}/usr/lib/chromium/${BROWSER}" "$@"
`,
  )
  chmodSync(join(work, BROWSER), 0o755)
}
