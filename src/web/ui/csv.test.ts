import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatCellText, formatCsvRow, parseCsv } from './csv.ts'

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

describe('parseCsv', () => {
  it('reads the cells that were written, wherever the text is divided', async () => {
    const rows = [
      ['a', 1, true, null, 'b,"c"\n'],
      ['=1', '', '"', 'x\r\ny', 'é𝄞'],
    ]
    const text = rows.map(formatCsvRow).join('')
    for (const size of [1, 2, 5, text.length]) {
      const parts = async function* () {
        for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size)
      }
      const found: unknown[] = []
      for await (const row of parseCsv(parts())) found.push(row)
      assert.deepEqual(
        found,
        rows.map(row => row.map(formatCellText)),
      )
    }
  })
})
