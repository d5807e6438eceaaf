/** The pages for app developers in a real browser: the lab, the registered apps with their code, the activity. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { inspectOnEveryScreen, useBrowser, type WatchedPage } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack()
})
after(() => stack?.close())
const open = useBrowser()

async function enter(options?: Parameters<typeof open>[0]): Promise<WatchedPage> {
  const watched = await open(options)
  await logIn(watched.page, stack)
  return watched
}

const visit = (page: Page, path: string) => page.goto(`${stack.settings.issuerUrl}${path}`)

describe('/activity', () => {
  it('shows times in the zone of the reader and names it, also in events that arrive later (ACTIVITY-8)', async () => {
    const refuse = (query: string) => fetch(`${stack.settings.issuerUrl}/oauth2/authorize?${query}`)
    await refuse('client_id=nobody')
    const { page, faults } = await enter({ timezoneId: 'Asia/Kolkata' })
    await visit(page, '/activity')
    await page.getByText('Times are in the zone Asia/Calcutta').waitFor()
    const times = page.locator('.event__time time')
    await refuse('client_id=sallyport-app')
    await page.waitForFunction(() => document.querySelectorAll('.event__time time').length > 1)
    const later = times.first()
    const at = new Date((await later.getAttribute('datetime')) ?? '')
    const here = new Date(at.getTime() + 5.5 * 3_600_000).toISOString().slice(11, -1)
    await later.getByText(here).waitFor()
    await inspectOnEveryScreen(page, 'activity')
    assert.deepEqual(faults, [])
  })

  it('names UTC without scripts (ACTIVITY-8)', async () => {
    const { page } = await enter({ timezoneId: 'Asia/Kolkata', javaScriptEnabled: false })
    await visit(page, '/activity')
    await page.getByText('Times are in the zone UTC').waitFor()
    const time = page.locator('.event__time time').first()
    assert.equal(await time.textContent(), (await time.getAttribute('datetime'))?.slice(11, -1))
  })
})
