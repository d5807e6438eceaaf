import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { findFiles, parseFormat } from './find-files.ts'
import { temporaryFolder } from './testing/files.ts'

describe('findFiles', () => {
  const folder = temporaryFolder()
  folder.write('in/b.ndjson', '12')
  folder.write('in/a.JSON.gz', '1')
  folder.write('in/deep/er/c.jsonl', '123')
  folder.write('in/readme.md', '')
  folder.write('in/.hidden.json', '')
  folder.write('odd.txt', '{}')
  mkdirSync(join(folder.path, 'void'))
  symlinkSync('..', join(folder.path, 'in/deep/up'))

  it('lists the files of a folder once, by name, and counts the ignored ones', async () => {
    const { files, skipped, unreadable } = await findFiles(['in'], folder.path)
    assert.deepEqual(
      files.map(it => it.label),
      ['in/a.JSON.gz', 'in/b.ndjson', 'in/deep/er/c.jsonl'],
    )
    assert.deepEqual(
      files.map(it => it.size),
      [1, 2, 3],
    )
    assert.deepEqual({ skipped, unreadable }, { skipped: 1, unreadable: [] })
  })

  it('accepts a listed file whatever its name, and each file once', async () => {
    const { files } = await findFiles(['odd.txt', 'in/b.ndjson', join(folder.path, 'in')], folder.path)
    assert.deepEqual(
      files.map(it => it.path.slice(folder.path.length)),
      ['/odd.txt', '/in/b.ndjson', '/in/a.JSON.gz', '/in/deep/er/c.jsonl'],
    )
  })

  it('reports missing paths and paths that are not files, and finds nothing in an empty folder', async () => {
    const { files, unreadable } = await findFiles(['void', 'none.json', '/dev/null'], folder.path)
    assert.deepEqual(files, [])
    assert.deepEqual(unreadable, [
      { file: 'none.json', reason: 'There is no such file or folder' },
      { file: '/dev/null', reason: 'It is neither a file nor a folder' },
    ])
  })
})

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
    it(`recognizes ${name} as ${expected}`, () => {
      assert.equal(parseFormat(label, Buffer.from(content)).kind, expected)
    })
  }
})
