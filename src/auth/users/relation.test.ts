import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findRelation } from './relation.ts'

const SYSTEM = 'http://terminology.hl7.org/CodeSystem/v3-RoleCode'

describe('findRelation', () => {
  const find = (relationship: unknown) => findRelation({ resourceType: 'RelatedPerson', relationship })

  it('says what the patient is to the related person (PATIENTS-9)', () => {
    for (const [code, relation] of [
      ['MTH', 'Your child'],
      ['SON', 'Your parent'],
      ['WIFE', 'Your husband, wife or partner'],
      ['GUARD', 'You are the guardian'],
    ])
      assert.equal(find([{ coding: [{ system: SYSTEM, code }] }]), relation)
  })

  it('takes the first code that it knows, and none of other systems or forms (PATIENTS-9)', () => {
    const guardian = {
      coding: [
        { system: 'urn:other', code: 'MTH' },
        { system: SYSTEM, code: 'GUARD' },
      ],
    }
    assert.equal(find([{ text: 'Mother' }, { coding: null }, guardian]), 'You are the guardian')
    for (const relationship of [undefined, null, 'MTH', [7], [{ coding: 'MTH' }], [{ text: 'Mother' }]])
      assert.equal(find(relationship), undefined)
  })
})
