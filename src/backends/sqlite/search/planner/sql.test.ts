import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from './sql.ts'

describe('sql', () => {
  it('has values as question marks, and other SQL as it is', () => {
    const condition = sql`id = ${'a'}`
    assert.deepEqual(sql`SELECT 1 FROM resource WHERE ${condition} AND rid > ${2}`, {
      text: 'SELECT 1 FROM resource WHERE id = ? AND rid > ?',
      values: ['a', 2],
    })
  })

  it('has the number of a LIMIT in its text, so that SQLite does not plan the statement again', () => {
    assert.deepEqual(sql`SELECT 1 FROM (${sql`SELECT rid FROM token LIMIT ${5}`}) LIMIT ${-1}`, {
      text: 'SELECT 1 FROM (SELECT rid FROM token LIMIT 5) LIMIT -1',
      values: [],
    })
    for (const limit of [1.5, Number.NaN, '1; DROP TABLE token', null])
      assert.throws(() => sql`SELECT rid FROM token LIMIT ${limit}`, /whole number/)
  })
})
