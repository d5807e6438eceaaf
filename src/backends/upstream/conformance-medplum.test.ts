import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testBackend } from '../../fhir-api/testing/backend-conformance.ts'
import { startTwoPatients } from '../../fhir-api/testing/two-patients.ts'
import { readIds, type StartFhir } from '../sqlite/testing/fhir.ts'
import { startMedplum } from './testing/medplum-upstream.ts'
import { startRecordedGateway } from './testing/start-gateway.ts'

const start: StartFhir = async options => {
  const upstream = await startMedplum()
  const fhir = await startRecordedGateway(upstream.url, { profile: 'if-none-match', ...options })
  fhir.app.addHook('onClose', async () => {
    await upstream.close()
  })
  return fhir
}

describe('the gateway in front of the FHIR router of Medplum (GATEWAY-1)', () => {
  testBackend({
    lacks: {
      metadata: 'the router has none',
      'numbered-versions': 'versions are UUIDs',
      locations: 'no Location',
      validation: 'content is not validated in memory',
      'deleted-versions': 'a deleted resource is 404, without versions',
      history: 'of a resource only, without deletions',
      'conditional-writes': 'a create does not tell whether it matched',
      transactions: 'an entry that fails does not undo the others',
      decimals: 'numbers are doubles',
      paging: 'no links',
      includes: 'not repeated, no star',
      sort: 'dates and numbers are sorted as text',
      chains: 'only one step, of one type',
      modifiers: 'some',
      dates: 'ne finds resources without a date',
      strings: 'any part of a string, with accents',
      'bare-references': 'Type/id only',
      compartments: 'none',
      quantities: 'no implicit precision',
      'search-all-types': 'not in memory',
      'whole-compartments': 'no compartments',
      everything: 'no operations',
      'dangling-references': 'stored, which the gateway does not know',
      'reference-lists': 'lists of values are not split for references',
      'same-responses': 'no 304, no _elements',
      'same-refusals': 'its own texts',
    },
    start,
  })

  it('has no total of a page if the server does not show whether more pages follow', async () => {
    const { fhir, ann } = await startTwoPatients(start)
    const first = await ann('GET Observation?_count=1')
    assert.deepEqual([readIds(first).length, first.body.total], [1, undefined])
    assert.doesNotMatch(first.text, /127\.0\.0\.1/)
    await fhir.close()
  })
})
