import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAuditor } from '../../../audit/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { listProblems } from './problems.ts'

describe('listProblems', () => {
  const open = openTestStore()

  it('lists refusals and codes with fewer scopes, oldest first, with what to change (CLI-13)', async () => {
    const store = await open()
    const audit = createAuditor({ store })
    const auth = await TestAuthServer.open(store, { audit })
    const browser = auth.openBrowser()
    await browser.login()
    await auth.getCode(browser, { scope: 'launch patient/Patient.rs' })
    await auth.getCode(browser, { scope: 'launch launch/encounter patient/Patient.rs' })
    const fhir = { server: 'fhir', kind: 'fhir', allowed: false, method: 'GET' } as const
    await audit.record(
      { ...fhir, at: auth.time.now - 1, status: 401, reason: 'Missing token', repeats: 57 },
      { ...fhir, at: auth.time.now + 1, status: 403, request: 'Patient/2', reason: 'No.', client: 'my-app' },
      { ...fhir, at: auth.time.now + 2, status: 403, request: 'Patient/3', client: 'sallyport-portal' },
      {
        ...fhir,
        at: auth.time.now + 2,
        status: 400,
        request: 'Condition?x=…',
        client: 'my-app',
        allowed: true,
      },
      {
        ...fhir,
        at: auth.time.now + 2,
        status: 404,
        request: 'Condition/9',
        client: 'my-app',
        allowed: true,
      },
    )
    const found = await listProblems({ store }, { since: 0, limit: 10 })
    assert.deepEqual(
      found.map(({ status, request, app }) => [status, request, app]),
      [
        [401, 'GET [base]', undefined],
        [302, undefined, 'sallyport-app'],
        [403, 'GET Patient/2', 'my-app'],
        [400, 'GET Condition?x=…', 'my-app'],
      ],
    )
    const [repeated, code, refused, failed] = found
    assert.match(failed?.cause ?? '', /parameters, headers or content are not valid/)
    assert.match(repeated?.cause ?? '', /^Missing token \(57 more like it\)$/)
    assert.match(code?.cause ?? '', /^No encounter was chosen/)
    assert.deepEqual(code?.compared, [
      {
        name: 'scope',
        sent: 'launch launch/encounter patient/Patient.rs',
        expected: ['launch patient/Patient.rs'],
        origin: 'granted',
      },
    ])
    assert.match(refused?.action ?? '', /^Make the app request a scope/)
    assert.deepEqual(await listProblems({ store }, { since: 0, limit: 1 }), [failed])
    assert.deepEqual(await listProblems({ store }, { since: auth.time.now + 3, limit: 10 }), [])
  })
})
