import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAuditor } from '../../../audit/index.ts'
import { explain } from '../../../interceptor/index.ts'
import type { ExplainRequest } from '../../base/context.ts'
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
    assert.deepEqual(await listProblems({ store }, { since: 0, limit: 10, client: 'my-app' }), [
      refused,
      failed,
    ])
    assert.deepEqual(await listProblems({ store }, { since: auth.time.now + 3, limit: 10 }), [])
  })

  it('explains that a code has no patient/ scopes because the launch has no patient (CLI-13)', async () => {
    const store = await open()
    const auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
    const browser = await auth.logIn()
    await auth.authorize(browser, { scope: 'openid launch patient/Patient.rs', launch: undefined })
    const [problem, ...others] = await listProblems({ store }, { since: 0, limit: 10 })
    assert.match(problem?.cause ?? '', /^There is no patient in this launch, .* the scope launch\/patient\.$/)
    assert.match(problem?.action ?? '', /^Send the value of “launch” .* request launch\/patient, /)
    assert.deepEqual(others, [])
  })

  it('explains what /activity explains, in the same words, also of requests that were allowed (CLI-13)', async () => {
    const store = await open()
    const explainRequest: ExplainRequest = question =>
      explain(
        { ...question, searchPermission: 'r', contexts: ['patient', 'user', 'system'] },
        'http://localhost:8080/fhir',
      )
    const audit = createAuditor({ store })
    const auth = await TestAuthServer.open(store, {
      audit,
      explainRequest,
      settings: { developerTools: true },
    })
    const browser = await auth.logIn()
    const launch = (await auth.exchange(await auth.getCode(browser, { state: undefined }))).json().launch_id
    await auth.getCode(browser, { scope: 'launch launch/encounter patient/Patient.rs' })
    await auth.authorize(browser, { redirect_uri: 'http://localhost:8081/other' })
    await auth.requestToken({ grant_type: 'x', client_id: 'sallyport-app' })
    await auth.requestToken({ grant_type: 'authorization_code', client_id: 'sallyport-app' })
    const fhir = { server: 'fhir', kind: 'fhir', method: 'GET', launch, at: auth.time.now + 1 } as const
    const search = { ...fhir, allowed: true, status: 200, by: 'patient/*.rs', patient: 'juniper' } as const
    await audit.record(
      { ...fhir, allowed: false, status: 403, request: 'Immunization', reason: 'Insufficient scope' },
      { ...fhir, allowed: false, status: 401, request: 'Condition', reason: 'Missing or non-Bearer token' },
      { ...fhir, allowed: true, status: 400, request: 'Condition?x=1', reason: 'Unknown parameter x' },
      { ...search, interaction: 'search-type', request: 'Condition?patient=other' },
      { ...search, interaction: 'search-type', method: 'POST', request: 'Condition/_search?subject=other' },
      { ...search, interaction: 'search-compartment', request: 'Patient/juniper/Condition?patient=other' },
      { ...search, interaction: 'search-type', request: 'Condition?patient=juniper' },
      { ...search, interaction: 'read', request: 'Patient/juniper' },
    )
    const listed = (await listProblems({ store, explainRequest }, { since: 0, limit: 100 })).map(
      ({ cause, action }) => `${cause} ${action}`,
    )
    assert.equal(listed.filter(text => text.startsWith('The search names Patient/other')).length, 3)
    for (const query of ['', '?result=problems']) {
      const { body } = await browser.get(`/activity${query}`)
      const explained = [...body.matchAll(/event__advice"><p>(.*?)<\/p>\n<p><b>What to do:<\/b> (.*?)<\/p>/g)]
      const texts = explained.map(([, cause, action]) => `${cause} ${action}`)
      assert.deepEqual([...new Set(texts)].sort(), [...new Set(listed)].sort(), query)
    }
  })

  it('has the text of the server and the scopes of the token, which explanations refer to (CLI-13)', async () => {
    const store = await open()
    const audit = createAuditor({ store })
    const auth = await TestAuthServer.open(store, { audit })
    await auth.requestToken({ grant_type: 'authorization_code', client_id: 'sallyport-app' })
    const [missing] = await listProblems({ store }, { since: 0, limit: 1 })
    assert.match(missing?.action ?? '', /Send the parameter that the reason names/)
    assert.match(missing?.reason ?? '', /^invalid_request: The parameter code is missing/)
  })

  it('reads the beginnings of more launches than SQLite unites at once (CLI-13)', async () => {
    const store = await open()
    const refused = { server: 'fhir', kind: 'fhir', allowed: false, status: 403, reason: 'No.' } as const
    const many = Array.from({ length: 600 }, (_, at) => ({ ...refused, at, launch: `launch-${at}` }))
    await createAuditor({ store }).record(...many)
    assert.equal((await listProblems({ store }, { since: 0, limit: 1000 })).length, 600)
  })
})
