import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OWN_FILES, OWN_PROGRAMS } from '../../src/core/own-files.ts'
import { findOwnFileFaults } from './own-files.ts'

const FILES = [...OWN_FILES, ...OWN_PROGRAMS.map(path => `${path}.ts`)]

function findFaults(file: string, text: string, more: readonly string[] = []): readonly string[] {
  return findOwnFileFaults(new Map([[file, text]]), [...FILES, ...more])
}

describe('findOwnFileFaults', () => {
  for (const text of [
    "readFileSync(new URL('./words.txt', import.meta.url))",
    "readFile(join(import.meta.dirname, 'words.txt'))",
    'const folder = dirname(import.meta.filename)',
    "createReadStream(import.meta.resolve('./words.txt'))",
    'dirname(process.argv[1])',
  ])
    it(`finds ${text}`, () => {
      const [fault = '', ...others] = findFaults('src/auth/a.ts', text)
      assert.match(fault, /^src\/auth\/a\.ts: .*: src\/core\/own-files\.ts finds the files of ours$/)
      assert.deepEqual(others, [])
    })

  it('allows tests, and what is no file of ours', () => {
    assert.deepEqual(findFaults('src/auth/a.test.ts', 'import.meta.dirname'), [])
    assert.deepEqual(findFaults('src/launcher/find-node.ts', 'createRequire(import.meta.url)'), [])
    assert.equal(findFaults('src/auth/a.ts', 'createRequire(import.meta.url)').length, 1)
  })

  it('finds a file that no package would have', () => {
    assert.deepEqual(findFaults('src/auth/a.ts', '', ['src/auth/words.txt', 'src/web/ui/assets/new.css']), [
      'src/auth/words.txt: no package has it, because src/core/own-files.ts does not name it',
    ])
  })

  it('finds a file of the list that does not exist', () => {
    assert.deepEqual(findOwnFileFaults(new Map(), FILES.slice(1)), [
      `src/core/own-files.ts: there is no ${FILES[0]}`,
    ])
  })
})
