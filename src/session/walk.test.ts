import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AppBrowser } from '../../test/support/app-browser.ts'
import { launchBrowser, useSessionApp } from '../../test/support/session-app.ts'
import { listRoutes } from '../web/http/index.ts'

describe('every page and endpoint of the app server', () => {
  const setup = useSessionApp()

  const VISITORS = {
    'a browser without a session': async () => new AppBrowser(setup.app),
    'a browser with a session': () => launchBrowser(setup.app, setup.ehr.fhirBaseUrl),
    'a browser whose session has ended': async () => {
      const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      await setup.store.db.deleteFrom('app_session').execute()
      return browser
    },
    'a browser with two sessions': async () => {
      const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      await browser.launch(setup.ehr.fhirBaseUrl)
      return browser
    },
  }

  for (const [name, open] of Object.entries(VISITORS))
    it(`responds to ${name}, or refuses in words (HTTP-15)`, async () => {
      const faults: string[] = []
      for (const { method, path } of listRoutes(setup.app))
        for (const query of ['', '?status=active&_count=5&code=85354-9', '?iss=x&launch=y&state=z&code=c']) {
          const browser = await open()
          const url = path.startsWith('/s/') ? path.replace(/^\/s\/:\w+/, browser.page) : path
          const { statusCode, body } = await browser[method === 'GET' ? 'get' : 'post'](
            `${url.replace(/:\w+/g, 'x')}${query}`,
          )
          const hasWords = /<h1>[^<]{3,}|"(?:diagnostics|text|error_description)":"[^"]{3,}/.test(body)
          if (statusCode >= 500 || (statusCode >= 400 && !hasWords))
            faults.push(`${method} ${path}${query}: ${statusCode} ${body.slice(0, 100)}`)
        }
      assert.deepEqual(faults, [])
    })
})
