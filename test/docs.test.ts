import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import {
  endpointFaults,
  findSection,
  listApiRoutes,
  listDocumentedRoutes,
} from '../scripts/checks/endpoints.ts'
import { readConfiguration } from '../src/config/index.ts'
import { listRoutes } from '../src/web/index.ts'
import { type Stack, startStack } from './support/stack.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const PAGE = 'docs/endpoints.md'
const text = read(PAGE)
/** Some paths contain a hash of the content. */
function served(app: FastifyInstance) {
  return listRoutes(app).map(({ method, path }) => ({ method, path: path.replace(/[0-9a-f]{16}/, ':hash') }))
}

const common = listDocumentedRoutes(findSection(text, 'All servers'))

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '0' } })
})
after(() => stack?.close())

describe(PAGE, () => {
  for (const [name, heading, api] of [
    ['auth', 'Auth server', 'docs/administration-api.md'],
    ['app', 'App server', 'docs/session-api.md'],
  ] as const) {
    it(`lists exactly the paths of the ${name} server (SERVICE-4)`, () => {
      const own = listDocumentedRoutes(findSection(text, heading))
      const listed = [...common, ...own, ...listApiRoutes(read(api))]
      assert.deepEqual(endpointFaults(PAGE, name, listed, served(stack[name])), [])
    })
  }

  it('lists the paths of the FHIR server outside its base URL', () => {
    const beside = served(stack.fhir).filter(({ path }) => !path.startsWith('/fhir'))
    assert.deepEqual(endpointFaults(PAGE, 'fhir', common, beside), [])
  })
})

describe('docs/production.md', () => {
  const page = read('docs/production.md')

  it('has settings with which the servers start', () => {
    const [, block = ''] = /^```sh\n(# \/etc\/sallyport\.env[\s\S]*?)^```/m.exec(page) ?? []
    const lines = [...block.replaceAll('…', 'x'.repeat(32)).matchAll(/^(\w+)='?([^'\n]*)/gm)]
    const env = Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value]))
    const { settings, warnings, problems } = readConfiguration(env, '/')
    assert.deepEqual([settings.issuerUrl, warnings, problems], ['https://auth.ehr.example', [], []])
  })

  it('starts a server by the unit as npm start does', () => {
    const { scripts } = JSON.parse(read('package.json'))
    const [, variable, command] = /^(\S+) exec node (.+)$/.exec(scripts.start) ?? []
    assert(page.includes(`\nEnvironment=${variable}\n`))
    for (const [, started] of page.matchAll(/^ExecStart=\S+\/node (.+) \S+$/gm))
      assert.equal(started, command)
  })
})
