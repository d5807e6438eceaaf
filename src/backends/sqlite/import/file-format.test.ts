import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseFormat } from './file-format.ts'

const resource = '{"resourceType":"Patient","id":"1"}'

describe('parseFormat', () => {
  for (const [name, label, content, expected] of [
    ['NDJSON by its name', 'a.ndjson', `${resource}\n`, 'lines'],
    ['compressed NDJSON by its name, with a broken first line', 'a.ndjson.gz', 'oops\n', 'lines'],
    ['JSON lines by their name', 'a.jsonl', resource, 'lines'],
    ['a resource a line in a .json file', 'a.json', `${resource}\n${resource}\n`, 'lines'],
    ['one resource on one line', 'a.json', resource, 'lines'],
    ['a resource over several lines', 'a.json', '{\n "resourceType": "Patient"\n}', 'document'],
    [
      'a Bundle on one line, longer than the bytes that are read',
      'a.json',
      '{"resourceType":"Bundle","entry":[{"resource":',
      'document',
    ],
    ['a long resource on one line', 'a.json', '{"resourceType":"Binary","data":"AAAA', 'lines'],
    ['an array on one line', 'a.json', `[${resource}]`, 'document'],
    ['an array over several lines', 'a.json', `[\n${resource}\n]`, 'document'],
    ['nothing', 'a.json', '', 'empty'],
    ['only spaces', 'a.json', ' \r\n', 'empty'],
    ['a zip archive', 'a.json', 'PK\u0003\u0004', 'unknown'],
    ['bytes that are not text', 'a.ndjson', 'ab\u0000cd', 'unknown'],
    ['XML', 'a.json', '<Patient/>', 'unknown'],
  ] as const) {
    it(`recognises ${name} as ${expected}`, () => {
      assert.equal(parseFormat(label, Buffer.from(content)).kind, expected)
    })
  }
})
