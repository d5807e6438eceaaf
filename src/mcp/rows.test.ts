import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeRow } from './rows.ts'

describe('describeRow', () => {
  const say = (code: object) => describeRow({ resourceType: 'Condition', id: '1', code }).what

  it('has the text of a code wherever it is, with the name of a known system', () => {
    const local = { system: 'http://a.example/codes', code: '7' }
    const known = { system: 'http://snomed.info/sct', code: '195967001', display: 'Asthma' }
    assert.equal(say({ coding: [local, known] }), 'Asthma [SNOMED CT 195967001]')
    assert.equal(say({ coding: [local], text: 'Wheeze' }), 'Wheeze')
    assert.equal(say({ coding: [local] }), '7')
    assert.equal(say({ coding: [{ system: 'toString', code: '7' }] }), '7')
  })
})
