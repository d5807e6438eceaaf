import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { LIMITS } from '../src/auth/base/limits.ts'
import * as lab from '../src/auth/lab/limits.ts'
import { testSettings } from '../src/auth/testing/settings.ts'
import * as proposals from '../src/proposals/limits.ts'
import * as session from '../src/session/limits.ts'
import * as connection from '../src/turns/connection.ts'
import * as threadPool from '../src/turns/thread-pool.ts'
import * as web from '../src/web/http/limits.ts'
import * as person from '../src/web/person/limits.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const [, section = ''] = read('docs/limits.md').split('## What strangers can do with these limits\n')
const rows = section
  .split('\n')
  .filter(line => line.startsWith('| `'))
  .map(line => line.split('|').map(cell => cell.trim()))
const findNames = (text: string) => [...text.matchAll(/`([A-Za-z_]+)`/g)].flatMap(([, name]) => name ?? [])

describe('the limits that strangers reach', () => {
  it('are all in the documentation, each once, with the answers to both questions', () => {
    const isConstant = ([, value]: readonly [string, unknown]) => typeof value !== 'function'
    const constants = [lab, session, connection, threadPool, web, person, proposals].flatMap(module =>
      Object.entries(module).filter(isConstant),
    )
    const settings = Object.keys(testSettings).filter(name => /limit/i.test(name))
    assert.ok(settings.length >= 2, 'settings that are limits')
    const inCode = [...Object.keys(LIMITS), ...constants.map(([name]) => name), ...settings]
    const others = section.split('\n').filter(line => line.startsWith('These '))
    const named = [...rows.map(([, names = '']) => names), ...others].flatMap(findNames)
    assert.deepEqual(named.toSorted(), inCode.toSorted())
    for (const [, names = '', whom = '', what = ''] of rows)
      for (const answer of [whom, what]) assert.ok(answer.length > 5, names)
  })

  it('are each proved by a test that exists', () => {
    for (const [, names, , , proof = ''] of rows) {
      const [, file = '', title = ''] = /^`(\S+)` “(.+)”$/.exec(proof) ?? assert.fail(`${names}: ${proof}`)
      const isTest = new RegExp(`\\bit\\(\\s*'${RegExp.escape(title)}(?: \\([A-Z0-9, -]+\\))?'`)
      assert.match(read(file), isTest, `${names}: ${file} “${title}”`)
    }
  })
})
