import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../../core/index.ts'
import { limits, parseEntries, runAtOnce, Work } from '../../../fhir/index.ts'
import { createAccessCache, type FhirRequest, RESPONSE_TOO_LARGE } from '../../../fhir-api/index.ts'
import { type Body, condition, patientAccess } from '../../sqlite/testing/fhir.ts'
import { createConcealment } from '../concealment.ts'
import type { GatewayContext } from '../context.ts'
import { chooseProfile } from '../profile.ts'
import { searchset } from '../testing/hostile-upstream.ts'
import { performRequest as handle } from '../testing/perform.ts'
import { createUrlRewriter } from './urls.ts'

const baseUrl = 'http://fhir.test/fhir'
const upstreamUrl = 'http://up.test'
const access = patientAccess('ann')

/** A context with an upstream of endless pages, which counts the requests to it. */
function endless(resources: readonly object[] = []) {
  const isEndless = resources.length === 0
  const link = [{ relation: 'next', url: `${baseUrl}/Condition?x` }]
  const page = searchset(resources, isEndless ? { link } : { total: resources.length })
  const answer = {
    status: 200,
    headers: { 'content-type': 'application/fhir+json' },
    text: JSON.stringify(page),
  }
  const seen = { times: 0 }
  const nothing = () => Promise.reject(new Error('not asked for'))
  const context: GatewayContext = {
    baseUrl,
    clock: Date.now,
    urls: createUrlRewriter(baseUrl, [upstreamUrl]),
    responseLimit: 1e6,
    isRecorded: false,
    relaysExports: false,
    upstream: {
      skim: async () => {
        seen.times += 1
        return { ...answer, bytes: 0 }
      },
      ask: nothing,
      pass: nothing,
      probe: nothing,
    },
    operations: [],
    isUpstreamParameter: () => false,
    pages: { parameter: '_page', seal: () => '', open: () => undefined },
    accessCache: createAccessCache(),
    memberLookups: new Map(),
    versionAccess: 'current',
    narrowing: () => 'parameter',
    profile: () => chooseProfile('auto', undefined).traits,
    recognize: async () => undefined,
    followsChains: async () => true,
    searchCache: 'bypass',
    deletions: new Map(),
    concealment: createConcealment(),
    conceal: undefined,
    serialize: (_keys, work) => work(),
    findMembers: nothing,
    findsWithin: async () => undefined,
    capabilities: nothing,
  }
  return { context, seen }
}

function bundleOf(entries: number, type = 'batch', url = 'Condition?_summary=count'): FhirRequest {
  const get = { request: { method: 'GET', url } }
  const body = { resourceType: 'Bundle', type, entry: Array.from({ length: entries }, () => get) }
  const work = new Work()
  return {
    interaction: { kind: 'bundle' },
    body,
    entries: runAtOnce(parseEntries(body, baseUrl, work)),
    work,
    preconditions: {},
    access,
    preferences: { answer: 'representation', lenient: false },
    authenticated: { allowed: true, decide: () => ({ allowed: true, access }) },
    isRevoked: async () => false,
    requestId: '1',
    connection: { destroyed: false, once: () => undefined },
    report: () => {},
  }
}

const answeredIn = (answer: object) => {
  const { body } = answer as { readonly body: string }
  const { entry } = JSON.parse(body) as { entry: { response: { status: string } }[] }
  return entry.length
}

describe('the number of requests to the upstream for one request', () => {
  it('is limited by its work, which the entries of a Bundle share', async () => {
    const { context, seen } = endless()
    await handle(context, bundleOf(1))
    assert.equal(seen.times, 50)
    assert.equal(answeredIn(await handle(context, bundleOf(90))), 90)
    const most = limits.WORK_UNITS / 600
    assert.ok(seen.times - 50 < most && seen.times - 50 > most / 2, `${seen.times} requests`)
  })

  it('stops growing when the caller disconnects', async () => {
    const { context, seen } = endless()
    const connection = {
      get destroyed() {
        return seen.times >= 7
      },
      once: () => undefined,
    }
    assert.equal(answeredIn(await handle(context, { ...bundleOf(3), connection })), 3)
    assert.equal(seen.times, 7)
  })
})

describe('the limit of the response to a Bundle', () => {
  const large = { ...condition('large', 'ann'), note: [{ text: 'x'.repeat(1_000_000) }] }

  it('is 4 MB: further entries of a batch are too costly and cause no request', async () => {
    const { context, seen } = endless([large])
    const answer = await handle(context, bundleOf(1_000, 'batch', 'Condition'))
    assert.ok(!isFailure(answer) && typeof answer.body === 'string')
    const { entry } = JSON.parse(answer.body) as Body
    const statuses = (entry ?? []).map(it => it.response?.status)
    assert.deepEqual(statuses, [...Array(4).fill('200 OK'), ...Array(996).fill('400 Bad Request')])
    assert.match(entry?.at(-1)?.response?.outcome?.issue?.[0]?.details.text ?? '', /exceed 4194304 bytes$/)
    assert.equal(seen.times, 5)
    assert.ok(answer.body.length < limits.BUNDLE_RESPONSE_BYTES + 400 * 1_000)
  })

  it('fails a transaction before it is sent', async () => {
    const { context, seen } = endless([large])
    const answer = await handle(context, bundleOf(1_000, 'transaction', 'Condition'))
    assert.ok(isFailure(answer) && answer.reason === 'entry-failed')
    assert.equal(answer.cause, RESPONSE_TOO_LARGE)
    assert.equal(seen.times, 5)
  })

  it('applies to the responses that the gateway reads', async () => {
    const { context, seen } = endless([{ ...large, note: [{ text: 'x'.repeat(9_000_000) }] }])
    await handle(context, bundleOf(1_000, 'batch', 'Condition?_summary=count'))
    assert.equal(seen.times, 8)
  })
})
