import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { afterEach, describe, it } from 'node:test'
import { fullAccess } from '../../../smart/index.ts'
import { createLogger } from '../../../web/http/index.ts'
import {
  condition,
  createAuthenticator,
  type Fhir,
  patient,
  patientAccess,
  readIds,
} from '../../sqlite/testing/fhir.ts'
import type { GatewayOptions } from '../index.ts'
import { startHapi } from '../testing/hapi/start-hapi.ts'
import { json, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const guard = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })
const NOTHING = 'profile post-only: nothing shows that a PUT of this server cannot overwrite'

let ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.toReversed()) await end()
  ends = []
})

async function open(
  upstream: { url: string; close(): Promise<void> },
  options: Partial<GatewayOptions> = {},
) {
  const lines: string[] = []
  const logger = createLogger({ level: 'warn', destination: { write: line => lines.push(line) } })
  const fhir = await startGateway(upstream.url, { guard, logger, profile: 'auto', ...options })
  ends.push(upstream.close, async () => fhir.close())
  const log = () => lines.map(line => String(JSON.parse(line).msg)).filter(it => it.includes('profile'))
  return { fhir, log }
}

async function readNote(fhir: Fhir): Promise<string> {
  const { checks } = (await fhir.app.inject({ url: '/readyz' })).json()
  return checks.find((it: { readonly name: string }) => it.name === 'upstream').note
}

describe('the profile of the upstream', () => {
  for (const [how, options, by] of [
    ['is named', {}, 'its header X-Powered-By'],
    ['has another name', { off: ['named-software'] }, 'its header X-Powered-By'],
    [
      'has neither the header nor codes',
      { off: ['powered-by', 'error-codes'] },
      'the software in its CapabilityStatement',
    ],
    [
      'has another name and no header',
      { off: ['named-software', 'powered-by'] },
      'the code in an error message',
    ],
    ['is behind a proxy that refuses metadata', { on: ['metadata-refused'] }, 'its header X-Powered-By'],
    [
      'is behind a proxy that refuses metadata and removes the header',
      { on: ['metadata-refused'], off: ['powered-by'] },
      'the code in an error message',
    ],
    ['shows nothing', { off: ['named-software', 'powered-by', 'error-codes'] }, undefined],
  ] as const)
    it(`lets no create of a limited caller overwrite a resource if HAPI ${how} (GATEWAY-38)`, async () => {
      const upstream = await startHapi(options)
      const { fhir, log } = await open(upstream)
      const put = async (by: Fhir | string, id: string, of: string) => {
        const path = `Condition/${id}`
        const headers = { 'content-type': 'application/fhir+json' }
        const body = JSON.stringify(condition(id, of))
        return typeof by === 'string'
          ? (await fetch(`${by}/${path}`, { method: 'PUT', headers, body })).status
          : (await by(`PUT ${path}`, condition(id, of))).status
      }
      for (const id of ['ann', 'bob'])
        assert.equal((await fhir.as('all')(`PUT Patient/${id}`, patient(id))).status, 201)
      upstream.before(async request => {
        if (request.method !== 'PUT') return
        upstream.before(undefined)
        await put(upstream.url, 'raced', 'bob')
      })
      const expected = by === undefined ? NOTHING : `profile hapi: recognized by ${by}`
      assert.equal(await put(fhir.as('ann'), 'raced', 'ann'), by === undefined ? 405 : 403)
      upstream.before(undefined)
      if (by !== undefined)
        assert.deepEqual((await fhir.as('all')('GET Condition/raced')).body.subject, {
          reference: 'Patient/bob',
        })
      assert.equal(await put(fhir.as('ann'), 'alone', 'ann'), by === undefined ? 405 : 201)
      assert.equal(log().at(-1), `Upstream ${expected}`)
      assert.equal(await readNote(fhir), expected)
    })

  it('is the one that is set, whatever the upstream shows (GATEWAY-38)', async () => {
    const { fhir, log } = await open(await startHapi(), { profile: 'post-only' })
    const expected = 'profile post-only: set by smart.fhir.upstream-profile'
    assert.deepEqual([await readNote(fhir), log()], [expected, [`Upstream ${expected}`]])
  })

  it('is not decided by a response that a caller can influence (GATEWAY-38)', async () => {
    const upstream = await startHostile()
    const { fhir } = await open(upstream)
    const issue = [{ severity: 'error', code: 'invalid', diagnostics: 'HAPI-0524: Unknown parameter' }]
    for (const status of [400, 404]) {
      upstream.answerJson({ resourceType: 'OperationOutcome', issue }, status)
      for (const by of ['all', 'ann']) await fhir.as(by)('GET Condition/c')
      assert.equal(await readNote(fhir), NOTHING)
    }
  })
})

describe('a gateway whose upstream does not answer a request for metadata', () => {
  for (const settings of [{}, { profile: 'strict', narrowing: 'parameter' }] as const)
    for (const held of ['GET', 'HEAD and GET'])
      it(`lets no other request wait for ${held} (${JSON.stringify(settings)}) (GATEWAY-39)`, {
        timeout: 30_000,
      }, async () => {
        const upstream = await startHostile()
        const waiting: ServerResponse[] = []
        upstream.answerMetadata((request, response) => {
          if (held.includes(String(request.method))) waiting.push(response)
          else json(response, {})
        })
        upstream.answer((request, response) => {
          const isSearch = request.url?.includes('Condition?') && !request.url.includes('_history')
          if (isSearch) json(response, searchset([condition('c', 'ann')]))
          else json(response, {}, 404)
        })
        // Any wait for metadata would exceed the time limit of this test.
        const { fhir } = await open(upstream, { ...settings, timeoutMs: 600_000 })
        assert.deepEqual(readIds(await fhir.as('ann')('GET Condition')), ['c'])
        assert.equal((await fhir.as('ann')('GET Condition/absent')).status, 403)
        assert.equal((await fhir.app.inject({ url: '/readyz' })).statusCode, 200)
        assert.ok(waiting.length > 0)
        for (const response of waiting) response.destroy()
      })
})
