/** The page checks of the browser tests can fail. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createServer, listen } from '../../src/web/http/index.ts'
import { html, raw, renderPage } from '../../src/web/ui/index.ts'
import { expectNoSidewaysScroll, expectNoViolation, inspectOnEveryScreen, useBrowser } from './browser.ts'

const BODIES: Readonly<Record<string, string>> = {
  good: '<h1>Good</h1>',
  inaccessible: '<h1>Bad</h1><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><input name="x">',
  wide: `<h1>Wide</h1><p class="nowrap">${'wide '.repeat(300)}</p>`,
  inline: '<h1>Inline</h1><script>document.title = "ran"</script>',
  styled: '<h1>Styled</h1><p style="color: red">x</p>',
  foreign: '<h1>Foreign</h1><img alt="" src="https://example.org/x.png">',
}

let app: FastifyInstance
let url: string
before(async () => {
  app = await createServer({ name: 'app', url: 'http://localhost:8081' })
  for (const [name, body] of Object.entries(BODIES))
    app.get(`/${name}`, (_request, reply) =>
      reply.sendPage(renderPage({ title: name, bar: { kind: 'app' } }, html`${raw(body)}`)),
    )
  url = `http://127.0.0.1:${await listen(app, 0, ['127.0.0.1'])}`
})
after(() => app?.close())
const open = useBrowser()

describe('the checks of a page', () => {
  it('accept a page of this service', async () => {
    const { page: tab, faults } = await open()
    await tab.goto(`${url}/good`)
    await inspectOnEveryScreen(tab, 'good')
    assert.deepEqual(faults, [])
  })

  it('fail if axe finds a fault', async () => {
    const { page: tab } = await open()
    await tab.goto(`${url}/inaccessible`)
    await assert.rejects(expectNoViolation(tab), /image-alt[\s\S]*label/)
  })

  it('fail if the page is wider than the window', async () => {
    const { page: tab } = await open({ viewport: { width: 390, height: 844 } })
    await tab.goto(`${url}/wide`)
    await assert.rejects(expectNoSidewaysScroll(tab), /\/wide is \d+ px wide in a window of 390 px/)
  })

  for (const name of ['inline', 'styled', 'foreign']) {
    it(`report content that the policy blocks (${name})`, async () => {
      const { page: tab, faults } = await open()
      await tab.goto(`${url}/${name}`)
      await tab.waitForLoadState('networkidle')
      assert.equal(await tab.title(), `${name} – Sallyport`)
      assert.match(faults.join('\n'), /Content Security Policy/)
    })
  }

  it('report an error response of the server', async () => {
    const { page: tab, faults } = await open()
    await tab.goto(`${url}/nowhere`)
    assert.match(faults.join('\n'), /404/)
  })
})
