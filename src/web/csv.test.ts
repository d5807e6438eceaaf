import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatCsvRow } from './csv.ts'

describe('formatCsvRow', () => {
  it('quotes cells, and leaves missing values empty', () => {
    assert.equal(formatCsvRow(['a', 1, true, null, undefined, 'b,"c"\n']), 'a,1,true,,,"b,""c""\n"\r\n')
  })

  it('writes no cell that a spreadsheet would run as a formula', () => {
    for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '"=1', '＝1'])
      assert.match(formatCsvRow([text]), /^"?'/, JSON.stringify(text))
    assert.equal(formatCsvRow(['a=1', 'Dr. A-B', -1]), 'a=1,Dr. A-B,-1\r\n')
  })
})
