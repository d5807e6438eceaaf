import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findAssignmentFaults } from './assignments.ts'
import { findConflictFaults } from './conflicts.ts'
import { findDecisionFaults } from './decisions.ts'
import { endpointFaults, findSection, listDocumentedRoutes } from './endpoints.ts'
import { findErrorFaults, findNames } from './errors.ts'
import { findHeadingFaults } from './headings.ts'
import { findIndexFaults, findLinkFaults } from './links.ts'
import { findMessageFaults } from './messages.ts'
import { findMetricFaults } from './metrics.ts'
import { findPathFaults } from './paths.ts'
import {
  findCitationFaults,
  findOutsideFaults,
  findRowFaults,
  findRuleFaults,
  listTests,
} from './specification.ts'

describe('findIndexFaults', () => {
  const faults = (index: string, decisions: string) =>
    findIndexFaults(
      new Map([
        ['docs/README.md', index],
        ['docs/how-to/reset.md', ''],
        ['docs/decisions/README.md', decisions],
        ['docs/decisions/0001-a.md', ''],
      ]),
    )

  it('accepts indexes that list every page', () => {
    assert.deepEqual(faults('[reset](how-to/reset.md)', '[0001](0001-a.md)'), [])
  })

  it('names a page that the nearest index leaves out', () => {
    assert.deepEqual(faults('', ''), [
      'docs/README.md: does not list docs/how-to/reset.md',
      'docs/decisions/README.md: does not list docs/decisions/0001-a.md',
    ])
  })
})

describe('findDecisionFaults', () => {
  const record = '# 0001 A\n\n## Context\nx\n\n## Decision\n- y\n\n## When to revisit\nIf z.\n'
  const faults = (text: string, page = 'docs/decisions/0001-a.md') =>
    findDecisionFaults(new Map([[page, text]]))

  it('accepts a record with all sections, and links by the right number', () => {
    assert.deepEqual(faults(record), [])
    assert.deepEqual(
      faults('[0001](docs/decisions/0001-a.md), [workers](docs/decisions/0002-b.md)', 'README.md'),
      [],
    )
  })

  for (const [name, text] of [
    ['without a section', record.replace('## When to revisit', '## Later')],
    ['with an empty section', record.replace('If z.', '')],
    ['with the number of another', record.replace('0001', '0002')],
    ['with a link that names another', `${record}[0002](0003-c.md)`],
  ] as const)
    it(`refuses a record ${name}`, () => assert.equal(faults(text).length, 1))
})

describe('findPathFaults', () => {
  const files = ['src/auth/server.ts', 'examples/launch.mjs']
  const faults = (text: string) => findPathFaults(new Map([['README.md', text]]), files)

  it('accepts files and folders, paths without their beginning, and other code', () => {
    const text =
      '`src/auth/server.ts` `src/auth/` `auth/server.ts` `server.ts` `examples/launch.mjs` `npm test` `a/b`'
    assert.deepEqual(faults(`${text}\n\`\`\`\n\`src/gone.ts\`\n\`\`\``), [])
  })

  for (const path of ['src/gone/server.ts', 'src/gone/', 'auth/gone.ts', 'gone.ts', 'examples/gone.mjs'])
    it(`refuses ${path}`, () => assert.equal(faults(`see \`${path}\``).length, 1))
})

describe('findAssignmentFaults', () => {
  const faults = (text: string) => findAssignmentFaults(new Map([['README.md', text]]))
  const block = (line: string) => faults(`\`\`\`sh\n${line}\n\`\`\``)

  for (const line of [
    'SMART_SECRET=a+b/c=',
    "SMART_DATABASE_URL='postgres://a?b&c'",
    'SMART_BRAND_NAME="Hospital account"',
    'SMART_WORKERS=2 npm start   # a comment',
    'TOKEN=$(curl -s "$AUTH/token" | jq -r .access_token)',
  ])
    it(`accepts ${line}`, () => assert.deepEqual(block(line), []))

  for (const line of ['SMART_DATABASE_URL=postgres://a?b&c', 'SMART_WORKERS=2   # a comment'])
    it(`refuses ${line}`, () => assert.equal(block(line).length, 1))

  it('refuses characters without quotes in a code span', () => {
    assert.equal(faults('set `SMART_DATABASE_URL=postgres://a?b&c`').length, 1)
  })
})

describe('findMessageFaults', () => {
  const sources = new Map([['src/store/sealer.ts', "throw new Error('Cannot decrypt ' + cell)"]])
  const faults = (text: string, page = 'README.md') => findMessageFaults(new Map([[page, text]]), sources)

  it('accepts the beginning of a message, settings and commands', () => {
    assert.deepEqual(faults('`Cannot decrypt signing_key.private_jwk_sealed` `SMART_SECRET` `npm start`'), [])
  })

  it('refuses a message that no source file has, except in the history', () => {
    assert.equal(faults('`Cannot open sealed …`').length, 1)
    assert.deepEqual(faults('`Cannot open sealed …`', 'docs/decisions/0001-a.md'), [])
  })
})

describe('findLinkFaults', () => {
  const files = new Set(['README.md', 'docs/settings.md', 'src/auth/server.ts'])
  const faults = (text: string, page = 'README.md') =>
    findLinkFaults(
      new Map([
        ['docs/settings.md', '# The settings: all\n'],
        [page, text],
      ]),
      files,
    )

  const right = [
    '[settings](docs/settings.md)',
    '[settings](docs/settings.md#the-settings-all)',
    '[code](src/auth)',
    '[code](src/auth/)',
    '[web](https://example.org/x) and [mail](mailto:a@b.c)',
    '`[not](a/link.md)`',
    '```\n[not](a/link.md)\n```',
    '# Top\n[up](#top)',
  ]
  for (const text of right) it(`accepts ${JSON.stringify(text)}`, () => assert.deepEqual(faults(text), []))

  const wrong = [
    '[x](docs/gone.md)',
    '![x](docs/gone.png)',
    '<img alt="" src="gone.png">',
    '[x](docs/settings.md#gone)',
    '[x](#gone)',
  ]
  for (const text of wrong) it(`refuses ${JSON.stringify(text)}`, () => assert.equal(faults(text).length, 1))

  it('goes from the folder of the page', () => {
    assert.deepEqual(faults('[x](../src/auth/server.ts) [y](settings.md)', 'docs/a.md'), [])
    assert.equal(faults('[x](src/auth/server.ts)', 'docs/a.md').length, 1)
  })
})

/** The source of a test of rules: the numbers are not in a title of this file. */
function writeTest(title: string, numbers: string): string {
  return `it('${title} (${numbers})', () => {})\n`
}

describe('listTests', () => {
  const sources = new Map([
    ['src/b/b-suite.ts', writeTest('writes all', 'SCOPE-1, SCOPE-2').replaceAll("'", '`')],
    [
      'src/a/a.test.ts',
      writeTest("reads the client\\'s scope", 'SCOPE-1') + writeTest('is (not) listed', 'x-1'),
    ],
    ['src/a/a.ts', writeTest('is no test', 'SCOPE-2')],
  ])

  it('writes the tests of each rule below it', () => {
    const rules = '# Rules\n\n- **SCOPE-1** A rule\n  of two lines.\n- **SCOPE-2** x\n\n## End\n'
    assert.equal(
      listTests(rules, sources),
      '# Rules\n\n- **SCOPE-1** A rule\n  of two lines.\n' +
        "  - `src/a/a.test.ts` “reads the client's scope”\n  - `src/b/b-suite.ts` “writes all”\n" +
        '- **SCOPE-2** x\n  - `src/b/b-suite.ts` “writes all”\n\n## End\n',
    )
  })
})

describe('findRuleFaults', () => {
  const faults = (text: string, numbers = 'SCOPE-1') =>
    findRuleFaults('page.md', text, new Map([['src/a/a.test.ts', writeTest('reads', numbers)]]))

  it('accepts rules that have tests', () => {
    assert.deepEqual(
      faults('- **SCOPE-1** A rule\n  of two lines.\n- **SCOPE-2** x\n', 'SCOPE-1, SCOPE-2'),
      [],
    )
  })

  const wrong: readonly (readonly [text: string, numbers: string, fault: string])[] = [
    [
      '- **SCOPE-1** x\n- **SCOPE-2** y',
      'SCOPE-1',
      'page.md: SCOPE-2 has no test, no title ends with its number',
    ],
    [
      '- **SCOPE-1** x\n  - `src/a/a.test.ts` “reads”',
      'SCOPE-1',
      'page.md: lists tests, which only the website has',
    ],
    ['- **SCOPE-1** x\n- **SCOPE-1** y', 'SCOPE-1', 'page.md: SCOPE-1 is the number of two rules'],
    [
      '- **SCOPE-1** x',
      'SCOPE-1, OTHER-1',
      'src/a/a.test.ts: the test “reads” names OTHER-1, which is not a rule',
    ],
  ]
  for (const [text, numbers, fault] of wrong)
    it(`finds: ${fault}`, () => assert.deepEqual(faults(text, numbers), [fault]))

  it('finds a page without rules', () => {
    assert.ok(faults('# Rules').includes('page.md: has no rules'))
  })
})

describe('findRowFaults', () => {
  const sources = new Map([['src/a/a.test.ts', "it('reads the scope', () => {})"]])
  const faults = (row: string) => findRowFaults('page.md', `| row | test |\n|---|---|\n${row}\n`, sources)

  it('accepts a row with a test that exists, with or without its title', () => {
    assert.deepEqual(faults('| 5.2.1 | `src/a/a.test.ts` |'), [])
    assert.deepEqual(faults('| 5.2.1 | `src/a/a.test.ts` “reads the scope” |'), [])
  })

  const wrong: readonly (readonly [row: string, fault: RegExp])[] = [
    ['| 5.2.1 | |', /5\.2\.1 names no test/],
    ['| 5.2.1 | `src/a/b.test.ts` |', /which does not exist/],
    ['| 5.2.1 | `src/a/a.test.ts` “writes the scope” |', /which is not in/],
    ['| 5.2.1 | `src/a/a.test.ts`, `src/a/b.test.ts` |', /b\.test\.ts, which does not exist/],
  ]
  for (const [row, fault] of wrong) {
    it(`refuses ${row}`, () => {
      assert.equal(faults(row).length, 1)
      assert.match(faults(row)[0] ?? '', fault)
    })
  }
})

describe('findCitationFaults', () => {
  it('finds numbers that no rule has, in every text', () => {
    const texts = new Map([
      ['src/a.ts', '// EXAMPLE-1, EXAMPLE-2; SHA-256 and UTF-8 are not rules'],
      ['docs/a.md', 'See EXAMPLE-1.'],
    ])
    assert.deepEqual(findCitationFaults('- **EXAMPLE-1** x\n', texts), [
      'src/a.ts: cites EXAMPLE-2, which is not a rule',
    ])
  })
})

describe('findOutsideFaults', () => {
  const faults = (file: string, text: string) =>
    findOutsideFaults(new Map([[file, text]]), ['docs/limits.md'])

  it('accepts pages of the repository, standards and plain words', () => {
    for (const text of [
      '// See docs/limits.md.',
      '// RFC 6749, 4.1',
      '// An issue of the contract',
      "read('gone.md')",
    ])
      assert.deepEqual(faults('src/a.ts', text), [], text)
    assert.deepEqual(faults('docs/a.md', '[limits](limits.md)'), [])
  })

  it('refuses numbers of other documents, in titles too, and pages that do not exist', () => {
    const number = 5.3
    for (const text of [
      `// (contract ${number})`,
      `it('keeps issue ${number}')`,
      '// see gone.md 3',
      ' * (docs/gone.md)',
    ])
      assert.equal(faults('src/a.ts', text).length, 1, text)
    assert.equal(faults('docs/a.md', 'As gone.md says').length, 1)
  })
})

describe('findNames', () => {
  it('reads unions of literals and of objects, and the interfaces among them', () => {
    const text = `
interface NotWithin {
  readonly kind: 'not-within'
}
export type Code =
  | 'one'
  | 'two'

export type Failure =
  | { readonly kind: 'no-session' }
  /** why */
  | { readonly kind: 'missing'; readonly what: 'x' | 'y' }
  | NotWithin

export type Other = 'three'
`
    assert.deepEqual(findNames(text, 'Code'), ['one', 'two'])
    assert.deepEqual(findNames(text, 'Failure'), ['no-session', 'missing', 'not-within'])
    assert.deepEqual(findNames(text, 'Gone'), [])
  })
})

describe('findErrorFaults', () => {
  it('finds errors without a line, and files without errors', () => {
    const sources = new Map([
      ['src/auth/words/reason.ts', "export type RefusalCode =\n  | 'one'\n  | 'two'\n"],
      ['src/web/index.ts', ''],
    ])
    const faults = findErrorFaults('docs/errors.md', 'There is `one`.', sources)
    assert.ok(faults.includes('docs/errors.md: does not name two of src/auth/words/reason.ts'))
    assert.ok(!faults.some(fault => fault.includes('does not name one')))
    assert.ok(faults.some(fault => fault.includes('cannot find the errors of src/web/http/problems.ts')))
    assert.equal(faults.length, 2)
  })
})

describe('endpointFaults', () => {
  const page =
    '# Endpoints\n\n## Auth server\n\n| a | b | c |\n|---|---|---|\n| `GET` | `/portal` | x |\n\n## App\n\n| `GET` | `/x` |\n'

  it('reads the rows of a section', () => {
    assert.deepEqual(listDocumentedRoutes(findSection(page, 'Auth server')), [
      { method: 'GET', path: '/portal' },
    ])
  })

  it('finds what is missing on either side', () => {
    const served = [{ method: 'POST', path: '/login' }]
    assert.deepEqual(
      endpointFaults('p', 'auth', listDocumentedRoutes(findSection(page, 'Auth server')), served),
      ['p: auth serves POST /login, not listed', 'p: auth does not serve GET /portal'],
    )
  })
})

describe('findHeadingFaults', () => {
  const faults = (...headings: readonly string[]) => findHeadingFaults('CHANGELOG.md', headings.join('\n\n'))

  it('accepts a heading that every version has', () => {
    assert.deepEqual(faults('# Changelog', '## 0.2.0', '### Pages', '## 0.1.0', '### Pages'), [])
  })

  it('names a version, a section or an entry that occurs twice', () => {
    assert.deepEqual(faults('## 0.2.0', '## 0.1.0', '## 0.2.0'), [
      'CHANGELOG.md: has the heading "0.2.0" twice',
    ])
    assert.deepEqual(faults('## 0.2.0', '### Pages', '### Gateway', '### Pages'), [
      'CHANGELOG.md: has the heading "Pages" twice',
    ])
    assert.deepEqual(faults('## 0.2.0', '- a', '- b', '- a', '## 0.1.0', '- a'), [
      'CHANGELOG.md: has the entry "a" twice',
    ])
  })
})

describe('findConflictFaults', () => {
  const faults = (text: string) => findConflictFaults(new Map([['CHANGELOG.md', text]]))

  it('names a page with marks of a conflict', () => {
    assert.deepEqual(faults('- a\n<<<<<<< HEAD\n- b\n=======\n- c\n>>>>>>> branch\n'), [
      'CHANGELOG.md: has marks of a conflict',
    ])
  })

  it('accepts headings and quotes', () => {
    assert.deepEqual(faults('Title\n=======\n> quoted\n'), [])
  })
})

describe('findMetricFaults', () => {
  const sources = new Map([
    ['src/web/a.ts', "count({ name: 'sallyport_a_total' })\ncreateTable('sallyport_check')"],
    ['src/web/a.test.ts', "'sallyport_b_total'"],
  ])
  const faults = (text: string) => findMetricFaults('metrics.md', text, sources)

  it('accepts a page with every metric', () => {
    assert.deepEqual(faults('| `sallyport_a_total` | |'), [])
  })

  it('names a metric that the page lacks, and one that the servers lack', () => {
    assert.deepEqual(faults('| `sallyport_old_total` | |'), [
      'metrics.md: does not describe sallyport_a_total',
      'metrics.md: describes sallyport_old_total, which no server has',
    ])
  })
})
