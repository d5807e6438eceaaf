import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judgedBefore } from '../../consent/index.ts'
import { patientAccess } from '../../fhir-server/testing/fhir.ts'
import type { Call, Context } from '../call.ts'
import { handle } from '../handle.ts'
import { searchset } from '../testing/hostile-upstream.ts'
import { addressesOf } from './addresses.ts'
import { allowanceFor } from './allowance.ts'

const baseUrl = 'http://fhir.test/fhir'
const upstreamUrl = 'http://up.test'
const access = patientAccess('ann')

/** A context before an upstream without end, which counts how often it is asked. */
function endless() {
  const page = searchset([], {
    link: [{ relation: 'next', url: `${baseUrl}/Condition?x` }],
  })
  const answer = {
    status: 200,
    headers: { 'content-type': 'application/fhir+json' },
    text: JSON.stringify(page),
  }
  const seen = { times: 0 }
  const nothing = () => Promise.reject(new Error('not asked for'))
  const context: Context = {
    ...{ baseUrl, addresses: addressesOf(baseUrl, [upstreamUrl]), responseLimit: 1e6, isRecorded: false },
    upstream: {
      ask: async () => {
        seen.times += 1
        return answer
      },
      ...{ pass: nothing, probe: nothing },
    },
    pages: { seal: () => '', open: () => undefined },
    judgedBefore: judgedBefore(),
    narrowing: async () => 'parameter',
    ...{ rosterOf: nothing, capabilities: nothing, smartConfiguration: () => ({}), handle },
  }
  return { context, seen }
}

function bundleOf(entries: number): Call {
  const get = { request: { method: 'GET', url: 'Condition?_summary=count' } }
  const body = { resourceType: 'Bundle', type: 'batch', entry: Array.from({ length: entries }, () => get) }
  return {
    ...{ interaction: { kind: 'bundle' }, body, exactBody: body, preconditions: {}, access },
    preferences: { answer: 'representation', lenient: false },
    admitted: { allowed: true, decide: () => ({ allowed: true, access }) },
    ...{ requestId: '1', connection: { destroyed: false } },
  }
}

const answeredIn = (answer: object) => {
  const { body } = answer as { readonly body: string }
  const { entry } = JSON.parse(body) as { entry: { response: { status: string } }[] }
  return entry.length
}

describe('how often the upstream is asked for one request', () => {
  it('grows with the entries of a Bundle, but not with what each of them looks through', async () => {
    assert.deepEqual([allowanceFor(undefined), allowanceFor(bundleOf(70).body)], [2000, 3400])
    const { context, seen } = endless()
    assert.equal(answeredIn(await handle(context, bundleOf(70))), 70)
    assert.equal(seen.times, 3400)
    await handle(context, bundleOf(1))
    assert.equal(seen.times, 3400 + 50)
  })

  it('ends when the caller has gone', async () => {
    const { context, seen } = endless()
    const connection = {
      get destroyed() {
        return seen.times >= 7
      },
    }
    assert.equal(answeredIn(await handle(context, { ...bundleOf(3), connection })), 3)
    assert.equal(seen.times, 7)
  })
})
