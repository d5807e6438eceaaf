import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { expectNoSidewaysScroll, expectNoViolation, SCREENS, useBrowser } from '../../test/support/browser.ts'
import { IS_THOROUGH } from '../../test/support/thorough.ts'

const SITE = resolve(import.meta.dirname, '../site.ts')
const PAGES = ['index.html', 'docs/proof.html', 'docs/gateway.html', 'vectors/bundles.html']
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
}

describe('the website of the documentation', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-site-'))
  const server = serve(folder)
  const open = useBrowser()
  let made: ReturnType<typeof spawnSync>
  before(() => {
    made = spawnSync(process.execPath, [SITE, folder], { encoding: 'utf8' })
  })
  after(() => {
    server.close()
    server.closeAllConnections()
    rmSync(folder, { recursive: true })
  })
  const at = (path: string) => `http://localhost:${(server.address() as AddressInfo).port}/${path}`

  it('has no link that leads nowhere', () => {
    assert.equal(made.status, 0, String(made.stderr))
    assert.match(String(made.stdout), /^\d+ pages/)
  })

  it('finds a word by its search, with the keyboard alone', async () => {
    const { page, faults } = await open()
    await page.goto(at('docs/proof.html'))
    await page.keyboard.press('/')
    await page.keyboard.type('narrowing')
    await page.locator('#found a').first().waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(/docs\/(?:gateway|settings|how-to\/protect-a-fhir-server)\.html/)
    assert.deepEqual(faults, [])
  })

  it('shows the current page in the list of pages', async () => {
    const { page } = await open(SCREENS['wide-light'])
    await page.goto(at('docs/proof.html'))
    const current = page.locator('.site-pages [aria-current]')
    assert.equal(await current.textContent(), 'Proof')
    const box = await current.boundingBox()
    assert(box && box.y > 0 && box.y + box.height < SCREENS['wide-light'].viewport.height)
  })

  it('shows the request of each decision vector, reached from the list of files', async () => {
    const { page } = await open()
    await page.goto(at('vectors/index.html'))
    await page.getByRole('link', { name: 'bundles.json' }).click()
    await page
      .getByText(/POST .*, \d+/)
      .first()
      .waitFor()
  })

  it('lists the tests of a rule below it', async () => {
    const { page } = await open()
    await page.goto(at('docs/specification.html'))
    const rule = page.getByRole('listitem').filter({ hasText: /^\s*SERVICE-3 / })
    await rule.getByText('Tests', { exact: true }).click()
    await rule.getByText('src/config/configuration.test.ts “has the documented defaults”').waitFor()
  })

  for (const [screen, options] of Object.entries(SCREENS))
    it(`is accessible and fits: ${screen}`, { skip: !IS_THOROUGH && 'only in a thorough run' }, async () => {
      const { page } = await open(options)
      for (const path of PAGES) {
        await page.goto(at(path))
        await expectNoSidewaysScroll(page)
        await expectNoViolation(page)
      }
    })
})

function serve(folder: string): Server {
  return createServer((request, response) => {
    const path = join(folder, new URL(request.url ?? '/', 'http://localhost').pathname)
    if (!existsSync(path)) return response.writeHead(404).end()
    const type = TYPES[extname(path)] ?? 'application/octet-stream'
    return response.writeHead(200, { 'content-type': type }).end(readFileSync(path))
  }).listen(0)
}
