import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  escapeLine,
  escapeLines,
  isNewUsername,
  isPlainLine,
  isUsername,
  removeControls,
  toPlainLine,
} from './plain-text.ts'

const CONTROLS = [
  '\0',
  '\t',
  '\n',
  '\u001b',
  '\u007f',
  '\u009b',
  '\u061c',
  '\u200b',
  '\u200e',
  '\u200f',
  '\u2028',
  '\u202a',
  '\u202e',
  '\u2066',
  '\u2069',
  '\ufeff',
]

describe('a name', () => {
  for (const control of CONTROLS)
    it(`has no ${JSON.stringify(control)} (${control.charCodeAt(0).toString(16)})`, () => {
      assert.equal(isPlainLine(`a${control}b`, 10), false)
      assert.equal(isUsername(`a${control}b`), false)
      assert.match(toPlainLine(` a${control}b `), /^a ?b$/)
      assert.match(escapeLine(`a${control}b`), /^a\\u[0-9a-f]{4}b$/)
      assert.equal(JSON.parse(`"${escapeLine(`a${control}b`)}"`), `a${control}b`)
    })

  it('may be of any script', () => {
    for (const name of ['Núñez-Ó', 'יעל', 'محمد', 'علی\u200cرضا', 'क्\u200dष', '李 雷', '🩺']) {
      assert.equal(isPlainLine(name, 20), true, name)
      assert.equal(toPlainLine(name), name)
      assert.equal(escapeLine(name), name)
    }
  })

  it('is not empty and not too long', () => {
    assert.deepEqual(
      ['', 'abc', 'abcd'].map(text => isPlainLine(text, 3)),
      [false, true, false],
    )
    assert.equal(isUsername(' ada'), false)
  })
})

describe('a new username', () => {
  for (const name of ['ada', 'a', 'Ada.Lovelace-2', 'ada@ward.example', 'núñez', '李雷', 'a'.repeat(100)])
    it(`may be ${name.slice(0, 20)}`, () => assert.equal(isNewUsername(name), true))

  for (const name of [
    '',
    ' ',
    'ada lovelace',
    '.ada',
    '-x',
    'a/b',
    'a\\b',
    'a<b',
    'a"b',
    '🩺',
    'n\u0303',
    'a'.repeat(101),
  ])
    it(`is not ${JSON.stringify(name.slice(0, 20))}`, () => assert.equal(isNewUsername(name), false))
})

describe('a text of several lines', () => {
  const text = 'a\tb\n\u001b[2K\u202ec\r'
  it('keeps its tabs and ends of lines, and loses other controls', () => {
    assert.equal(removeControls(text), 'a\tb\n[2Kc\r')
  })

  it('shows its controls on a terminal', () => {
    assert.equal(escapeLines(text), 'a\tb\n\\u001b[2K\\u202ec\\u000d')
  })
})
