import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import { prepareBrowser } from './browser-finder.ts'
import { IS_THOROUGH } from './thorough.ts'

const FLAGS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
  '--disable-gpu',
  '--disable-extensions',
  // Names that are not loopback: browsers treat plain http there in another way.
  '--host-resolver-rules=MAP *.test 127.0.0.1',
] as const

export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await prepareBrowser(), args: [...FLAGS] })
}

/** The browser that the test files of a process share, and how many of them have not ended. */
let shared: Promise<Browser> | undefined
let users = 0

/** Provides a browser for the tests of a file; `open` creates a context (cookies, scheme, width) with one page. */
export function useBrowser(): (options?: BrowserContextOptions) => Promise<WatchedPage> {
  const contexts: BrowserContext[] = []
  users += 1
  before(async () => {
    shared ??= launchBrowser()
    await shared
  })
  after(async () => {
    await Promise.all(contexts.map(context => context.close()))
    users -= 1
    if (users > 0) return
    const last = await shared
    shared = undefined
    await last?.close()
  })
  return async options => {
    const browser = await shared
    assert(browser, 'The browser is not started yet: open pages inside of tests')
    const context = await browser.newContext(options)
    contexts.push(context)
    if (options?.javaScriptEnabled === false) scriptless.add(context)
    context.setDefaultTimeout(30_000)
    return watch(context)
  }
}

/** axe is a script: without scripts it never ends. */
const scriptless = new WeakSet<BrowserContext>()

export interface WatchedPage {
  readonly context: BrowserContext
  readonly page: Page
  /** Console errors, page errors and policy violations seen so far. */
  readonly faults: readonly string[]
}

/** A page whose faults are collected: a blocked script or style is silent otherwise. */
async function watch(context: BrowserContext): Promise<WatchedPage> {
  const faults: string[] = []
  const page = await context.newPage()
  context.on('console', message => {
    if (message.type() === 'error') faults.push(`${message.text()} (${message.location().url})`)
  })
  context.on('weberror', error => faults.push(String(error.error())))
  return { context, page, faults }
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** In a thorough run, checks the current page with axe, which takes longer than everything else on a page. */
export async function expectAccessible(page: Page): Promise<void> {
  assert(!scriptless.has(page.context()), 'axe needs scripts: inspect the page in another context')
  if (IS_THOROUGH) await expectNoViolation(page)
}

/** axe finds nothing on the page as it is shown now. */
export async function expectNoViolation(page: Page): Promise<void> {
  // At the end of the page the decision bar has its own place. Elsewhere it lies over whatever is scrolled there, and axe
  // would measure how much of that is left to be hit.
  await page.evaluate(() => {
    if (document.querySelector('.decide, .launch__bar'))
      window.scrollTo(0, document.documentElement.scrollHeight)
  })
  const { violations } = await new AxeBuilder({ page }).withTags(RULES).setLegacyMode().analyze()
  const found = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map(node => `    ${node.html}\n    ${node.failureSummary}`).join('\n')}`,
  )
  assert.deepEqual(found, [], `axe on ${new URL(page.url()).pathname}`)
}

/** Nothing is wider than the window. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const { content, window } = await page.evaluate(() => ({
    content: document.documentElement.scrollWidth,
    window: document.documentElement.clientWidth,
  }))
  assert(
    content <= window,
    `${new URL(page.url()).pathname} is ${content} px wide in a window of ${window} px`,
  )
}

export const SCREENS = {
  'wide-light': { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  'wide-dark': { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  'narrow-light': { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
  'narrow-dark': { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
} as const satisfies Record<string, BrowserContextOptions>

/** Each colour scheme and each width once: axe checks colours and structure, which change with one of them. */
const AXE_SCREENS = ['wide-light', 'narrow-dark'] as const

type Screen = keyof typeof SCREENS

/** A browser takes as long for other screens and for axe as for all else that the tests do in it. */
const SEEN: readonly Screen[] =
  IS_THOROUGH || process.env.TEST_SCREENSHOTS !== undefined ? (Object.keys(SCREENS) as Screen[]) : []

/**
 * The page as it is now is not wider than a small window. A thorough run looks at it on every screen: accessible, not wider than
 * the window, pictures if a folder is given.
 */
export async function inspectOnEveryScreen(page: Page, name: string): Promise<void> {
  assert(!scriptless.has(page.context()), 'axe needs scripts: inspect the page in another context')
  const before = page.viewportSize() ?? SCREENS['wide-light'].viewport
  for (const screen of SEEN) {
    const { viewport, colorScheme } = SCREENS[screen]
    await page.setViewportSize(viewport)
    // Reduced motion: otherwise axe may see a colour half-way between light and dark.
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    if (AXE_SCREENS.some(it => it === screen)) await expectNoViolation(page)
    await expectNoSidewaysScroll(page)
    await screenshot(page, `${name}.${screen}`)
  }
  await page.setViewportSize({ width: 320, height: 640 })
  await expectNoSidewaysScroll(page)
  await page.setViewportSize(before)
  await page.emulateMedia({ colorScheme: null, reducedMotion: null })
}

/** Keeps a picture when `TEST_SCREENSHOTS` names a folder. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.TEST_SCREENSHOTS
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true })
}
