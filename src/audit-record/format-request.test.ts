import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseInteraction } from '../fhir/index.ts'
import { formatRequest } from './to-record.ts'

function kept(line: string): string {
  const [method = '', address = ''] = line.split(/ (.*)/s)
  const [path = '', query = ''] = address.split(/\?(.*)/s)
  const form = path.endsWith('_search')
  const interaction = parseInteraction({
    method,
    path,
    query: form ? '' : query,
    headers: form ? { 'content-type': 'application/x-www-form-urlencoded' } : {},
    form: form ? query : undefined,
  })
  return formatRequest(interaction, address)
}

describe('formatRequest', () => {
  const cases: readonly (readonly [line: string, kept: string])[] = [
    ['GET /Patient/juniper', 'Patient/juniper'],
    // The portal looks for a typed word as an id too.
    ['GET /Patient?_id=juniper', 'Patient?_id=…'],
    ['GET /Patient?_id=patient-1', 'Patient?_id=patient-1'],
    ['GET /Patient/juniper/_history/3', 'Patient/juniper/_history/3'],
    [
      'GET /Patient/juniper/Condition?clinical-status=active',
      'Patient/juniper/Condition?clinical-status=active',
    ],
    ['GET /Condition?patient=juniper&_count=50', 'Condition?patient=juniper&_count=50'],
    [
      'GET /Condition?subject=Patient/juniper&_sort=-recorded-date',
      'Condition?subject=Patient/juniper&_sort=-recorded-date',
    ],
    [
      'GET /Observation?category=vital-signs&date=ge2026-01-01',
      'Observation?category=vital-signs&date=ge2026-01-01',
    ],
    ['GET /Observation?code=http://loinc.org%7C85354-9', 'Observation?code=http://loinc.org|85354-9'],
    ['GET /Patient?name=Juniper&_count=20', 'Patient?name=…&_count=20'],
    ['GET /Patient?family:exact=Juniper', 'Patient?family:exact=…'],
    ['GET /Patient?identifier=urn:mrn%7C12345', 'Patient?identifier=…'],
    ['GET /Patient?birthdate=1958-03-14&gender=female', 'Patient?birthdate=…&gender=female'],
    ['GET /Patient?phone=5551234&email=a@b.example', 'Patient?phone=…&email=…'],
    ['GET /Patient?address-city=Springfield', 'Patient?address-city=…'],
    ['GET /Condition?subject:Patient.name=Juniper', 'Condition?subject:Patient.name=…'],
    ['GET /Patient?_has:Condition:patient:code=123', 'Patient?_has:Condition:patient:code=…'],
    ['GET /Condition?code:text=depression%20of%20Alba', 'Condition?code:text=…'],
    ['GET /Condition?patient=Alba%20Juniper', 'Condition?patient=…'],
    ['GET /Patient?Alba%20Juniper=1', 'Patient?…=…'],
    ['GET /Patient?_text=Juniper', 'Patient?_text=…'],
    ['POST /Patient/_search?name=Juniper', 'Patient/_search?name=…'],
    ['POST /Condition', 'Condition'],
    ['PUT /Condition?identifier=9', 'Condition?identifier=…'],
    ['DELETE /Condition/1', 'Condition/1'],
    ['POST /', ''],
    ['GET /metadata', 'metadata'],
    ['GET /Patient/juniper/$everything?start=2020', 'Patient/juniper/$everything?start=…'],
    ['GET /Patient/Alba%20Juniper?x=y', 'Patient/…?…'],
    ['GET /Nobody/Alba,Juniper', 'Nobody/…'],
  ]
  for (const [line, text] of cases) {
    it(`keeps ${line} as ${text === '' ? 'nothing' : text} (AUDIT-4)`, () => assert.equal(kept(line), text))
  }
})
