import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import { createOutcome, failFor, parseEntries, runAtOnce, Work } from '../fhir/index.ts'
import { type Authenticated, fullAccess } from '../smart/index.ts'
import { createRecords, type FinishedRequest } from './finished.ts'
import { OUTCOME_UNKNOWN } from './record.ts'

const BASE = 'http://fhir.test/fhir'
const authenticated: Authenticated = {
  allowed: true,
  grant: { scopes: [{ kind: 'resource', context: 'system' } as never] },
  decide: () => ({ allowed: true, access: fullAccess, by: 'system/*.cruds' }),
}

const condition = (patient: string) => ({
  resourceType: 'Condition',
  subject: { reference: `Patient/${patient}` },
})
const requestBody = {
  resourceType: 'Bundle',
  type: 'transaction',
  entry: [
    { resource: condition('juniper'), request: { method: 'POST', url: 'Condition' } },
    { resource: condition('ashlar'), request: { method: 'PUT', url: 'Condition/c' } },
    { request: { method: 'GET', url: 'Patient/quince' } },
  ],
}

const parsed = runAtOnce(parseEntries(requestBody, BASE, new Work()))
assert(!isFailure(parsed))
const decided = parsed.entries.map(({ interaction }) => ({
  interaction,
  decision: { allowed: true, access: fullAccess, by: 'system/*.cruds' } as const,
}))

function finish(outcome: Pick<FinishedRequest, 'status'> & Partial<FinishedRequest>): FinishedRequest {
  return {
    at: 1,
    method: 'POST',
    address: '',
    interaction: { kind: 'bundle' },
    by: 'entries',
    authenticated,
    requestBody,
    decided,
    ...outcome,
  }
}

describe('createRecords', () => {
  it('files a transaction with an unknown outcome under every patient that it names (AUDIT-5)', () => {
    const [whole] = createRecords(finish({ status: OUTCOME_UNKNOWN }), BASE)
    assert.deepEqual(whole.patients, ['juniper', 'ashlar', 'quince'])
  })

  for (const status of [500, 502, 503, 504])
    it(`files a transaction that failed with ${status} under every patient whose data it may have changed`, () => {
      const [whole, ...entries] = createRecords(finish({ status }), BASE)
      assert.deepEqual(whole.patients, ['juniper', 'ashlar'])
      assert.deepEqual(
        entries.map(it => it.patient),
        ['juniper', 'ashlar', undefined],
      )
    })

  it('files a transaction that was not performed under no patient', () => {
    const [whole] = createRecords(finish({ status: 412 }), BASE)
    assert.deepEqual([whole.patient, whole.patients], [undefined, undefined])
  })

  it('parses a resource again only if its text has changed', () => {
    let parsed = 0
    const read = (patient: string) => {
      const text = JSON.stringify(condition(patient))
      const parse = () => {
        parsed++
        return JSON.parse(text)
      }
      const [record] = createRecords(
        finish({
          status: 200,
          by: 'system/*.cruds',
          interaction: { kind: 'read', type: 'Condition', id: 'sent', params: [] },
          responseBody: text,
          contents: [{ type: 'Condition', id: 'sent', text, parse }],
        }),
        BASE,
      )
      return record.patient
    }
    assert.deepEqual([read('juniper'), read('juniper'), parsed], ['juniper', 'juniper', 1])
    assert.deepEqual([read('ashlar'), read('juniper'), parsed], ['ashlar', 'juniper', 3])
  })

  it('records why a search is not valid, unless a name in it is hidden (AUDIT-5)', () => {
    const problem = failFor('parameter-unknown', { parameter: 'x', type: 'Condition' })
    const search = (name: string) => {
      const interaction = { kind: 'search-type', type: 'Condition', params: [[name, '1']] } as const
      return createRecords({ ...finish({ status: 400, problem }), interaction }, BASE)[0]
    }
    assert.deepEqual(
      [search('x').allowed, search('x').reason],
      [true, 'Unknown search parameter x of Condition'],
    )
    assert.deepEqual(search('x').details, { reason: problem.reason, facts: problem.facts })
    assert.equal(search('Doe, Jane').reason, undefined)
    assert.deepEqual(search('Doe, Jane').details, { reason: problem.reason })
  })

  it('names the element that refers to something outside the grant, as the response does', () => {
    const problem = failFor('hidden-target', { element: 'Condition.encounter' })
    const [{ reason }] = createRecords(finish({ status: 403, problem }), BASE)
    assert.match(reason ?? '', /^Cannot store Condition\.encounter: the resource that it refers to/)
  })

  it('has what a refused token says about itself only in the details', () => {
    const claimed = { client_id: 'growth', jti: 'launch-1.x' }
    const refused = {
      allowed: false,
      status: 401,
      headers: {},
      outcome: createOutcome('login', 'No'),
      claimed,
    } as const
    const problem = { reason: 'refused', refused }
    const interaction = { kind: 'read', type: 'Patient', id: '1', params: [] } as const
    const request = { ...finish({ status: 401, problem }), interaction, authenticated: undefined }
    const [record] = createRecords(request, BASE)
    assert.deepEqual([record.details, record.client, record.launch], [{ claimed }, undefined, undefined])
  })

  it('records the entry that a transaction was refused for as refused, and only that one (AUDIT-5)', () => {
    const problem = { reason: 'entry-failed', entry: 1, cause: failFor('outside-access') }
    const [whole, ...entries] = createRecords(finish({ status: 403, problem }), BASE)
    assert.deepEqual([whole.allowed, whole.status], [false, 403])
    assert.deepEqual(
      entries.map(it => [it.allowed, it.reason]),
      [
        [true, undefined],
        [false, 'Not within the granted patient, user or filter.'],
        [true, undefined],
      ],
    )
  })
})
