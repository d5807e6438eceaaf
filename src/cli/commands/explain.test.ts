import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { runCommandLine } from '../command-line.ts'

async function run(
  argv: readonly string[],
  input: Iterable<string | Buffer> = [],
  env: Record<string, string> = {},
) {
  let out = ''
  let err = ''
  const code = await runCommandLine(['explain', ...argv], {
    stdin: Readable.from(input, { objectMode: false }),
    stdout: { write: text => (out += text) },
    stderr: { write: text => (err += text) },
    env,
    cwd: import.meta.dirname,
  })
  return {
    code,
    out,
    err,
    lines: out
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line.startsWith('{') ? line : 'null')),
  }
}

const request = ['--method', 'GET', '--url', '/Condition?patient=1', '--patient', '1']

describe('sallyport explain', () => {
  it('exits with 0 if allowed and 3 if refused, and explains why (CLI-2)', async () => {
    const allowed = await run([...request, '--scope', 'patient/Condition.rs'])
    assert.deepEqual([allowed.code, allowed.out], [0, 'Allowed by patient/Condition.rs, within Patient/1.\n'])
    const refused = await run([...request, '--scope', 'patient/Observation.rs'])
    assert.equal(refused.code, 3)
    assert.match(
      refused.out,
      /^Refused with 403: Insufficient scope for GET on Condition\. Required: patient\/Condition\.r or patient\/\*\.rs\n/,
    )
  })

  it('explains that a search for another patient finds nothing', async () => {
    const search = (url: string) =>
      run(['--url', url, '--patient', '1', '--scope', 'patient/*.rs']).then(({ code, out }) => [code, out])
    const allowed = 'Allowed by patient/*.rs, within Patient/1.\n'
    for (const url of ['/Condition?patient=2', '/Condition?subject=Patient/2', '/Patient?_id=2'])
      assert.deepEqual(await search(url), [
        0,
        `${allowed}The search names Patient/2, but finds only data in the record of Patient/1.\n`,
      ])
    for (const url of ['/Condition?patient=1', '/Condition?subject=1', '/Condition?code=2', '/Condition/2'])
      assert.deepEqual(await search(url), [0, allowed])
  })

  it('takes missing options from the settings', async () => {
    const search = [...request, '--scope', 'patient/Condition.r']
    assert.equal((await run(search)).code, 0)
    assert.equal((await run(search, [], { SMART_SEARCH_LETTER: 's' })).code, 3)
    assert.equal((await run([...search, '--search-letter', 'r'], [], { SMART_SEARCH_LETTER: 's' })).code, 0)
    const user = ['--url', '/Condition/1', '--scope', 'user/*.rs', '--fhir-user', 'Practitioner/1']
    assert.equal((await run(user)).code, 0)
    assert.equal((await run(user, [], { SMART_SCOPE_CONTEXTS: 'patient' })).code, 3)
    assert.equal(
      (await run([...user, '--contexts', 'patient,user'], [], { SMART_SCOPE_CONTEXTS: 'patient' })).code,
      0,
    )
  })

  it('accepts an absolute URL below the FHIR base, and no other', async () => {
    const base = 'http://localhost:8080/fhir'
    const ask = (url: string) => run(['--url', url, '--scope', 'patient/*.rs', '--patient', '1'])
    for (const url of ['/Patient/1', '/Condition?code=x', '?_type=Condition'])
      assert.deepEqual(await ask(base + url), await ask(url), url)
    for (const url of [
      'http://other.example/fhir/Patient/1',
      `${base}2/Patient/1`,
      'https://localhost:8080/fhir',
    ]) {
      const { code, err } = await ask(url)
      assert.deepEqual(
        [code, err],
        [2, `Cannot use --url: expected a URL below ${base}, for example /Patient/1\n`],
      )
    }
  })

  it('parses --fhir-user as clinician add does and explains errors', async () => {
    const ask = (user: string) =>
      run(['--url', '/Practitioner/kim', '--scope', 'openid', '--fhir-user', user])
    for (const user of ['kim', 'Practitioner/kim', 'http://localhost:8080/fhir/Practitioner/kim'])
      assert.equal((await ask(user)).out, "Allowed as the user's own resource, where _id=kim.\n", user)
    assert.equal((await ask('Patient/kim')).code, 3)
    for (const user of [
      'Organization/1',
      'Practitioner/',
      'k/i/m',
      'ki m',
      'http://other.example/fhir/Practitioner/1',
    ])
      assert.deepEqual(
        [(await ask(user)).code, (await ask(user)).err],
        [2, 'Cannot use --fhir-user: expected the id of a Practitioner, or for example Practitioner/<id>\n'],
        user,
      )
  })

  it('explains missing and invalid options', async () => {
    for (const [argv, message] of [
      [['--scope', 'openid'], 'Missing --url: see npm run -s sallyport -- explain --help\n'],
      [request, 'Missing --scope: see npm run -s sallyport -- explain --help\n'],
      [
        [...request, '--scope', 'openid', '--search-letter', 'x'],
        'Cannot use --search-letter: expected r or s\n',
      ],
      [
        [...request, '--scope', 'openid', '--contexts', 'all'],
        'Cannot use --contexts: expected one or more of patient, user and system\n',
      ],
    ] as const) {
      const { code, err } = await run(argv)
      assert.deepEqual([code, err], [2, message])
    }
  })

  it('writes a result for each line of --jsonl in order, in the documented format', async () => {
    const line = { method: 'GET', url: '/Condition?patient=1', scope: 'patient/Condition.rs', patient: '1' }
    const { code, out } = await run(
      ['--jsonl'],
      [
        `${JSON.stringify({ id: 'a', ...line })}\n`,
        `${JSON.stringify({ id: 7, ...line, method: 'POST', url: '/Condition' })}`,
      ],
    )
    assert.equal(code, 0)
    assert.equal(
      out,
      `{"id":"a","allowed":true,"status":200,"by":"patient/Condition.rs","within":"Patient/1","limits":[],"text":"Allowed by patient/Condition.rs, within Patient/1."}
{"id":7,"allowed":false,"status":403,"by":null,"within":null,"limits":[],"text":"Insufficient scope for POST on Condition. Required: patient/Condition.c or patient/*.c"}
`,
    )
  })

  it('writes status 400 for an unreadable line and continues', async () => {
    const good = '{"id":9,"method":"GET","url":"/metadata"}'
    const bad = [
      'junk',
      '',
      '[]',
      '1',
      '{"id":1}',
      '{"id":1,"method":1,"url":"/","scope":""}',
      '{"id":1,"method":"GET","url":"/","scope":5}',
      '{"id":1,"method":"GET","url":"/","searchLetter":"x"}',
      '{"id":1,"method":"GET","url":"/","contexts":["all"]}',
      '{"id":1,"method":"GET","url":"/","contexts":"patient"}',
      '{"id":1,"method":"GET","url":"/","patient":5}',
    ]
    const { code, lines } = await run(['--jsonl'], [[...bad, good].join('\n')])
    assert.equal(code, 0)
    assert.equal(lines.length, bad.length + 1)
    for (const answer of lines.slice(0, -1)) assert.deepEqual([answer.allowed, answer.status], [false, 400])
    assert.deepEqual([lines.at(-1).id, lines.at(-1).allowed], [9, true])
  })

  it('reads lines and characters that are split anywhere', async () => {
    const text = Buffer.from(
      '{"id":"ä€","method":"GET","url":"/metadata"}\r\n{"id":2,"method":"GET","url":"/metadata"}\n',
    )
    const bytes = [...text].map(byte => Buffer.from([byte]))
    assert.deepEqual(
      (await run(['--jsonl'], bytes)).lines.map(line => line.id),
      ['ä€', 2],
    )
  })

  it('honours searchLetter, contexts, fhirUser and body of a line', async () => {
    const lines = [
      { method: 'GET', url: '/Condition', scope: 'patient/Condition.r', patient: '1', searchLetter: 's' },
      {
        method: 'GET',
        url: '/Condition',
        scope: 'user/Condition.r',
        fhirUser: 'Practitioner/1',
        contexts: ['patient'],
      },
      {
        method: 'GET',
        url: '/Condition',
        scope: ['user/Condition.r'],
        fhirUser: 'Practitioner/1',
        contexts: ['user'],
      },
      {
        method: 'POST',
        url: '/Condition',
        scope: 'patient/Condition.c',
        patient: '1',
        body: { resourceType: 'Condition', subject: { reference: 'Patient/2' } },
      },
    ]
    const answers = (await run(['--jsonl'], [lines.map(line => JSON.stringify(line)).join('\n')])).lines
    assert.deepEqual(
      answers.map(answer => answer.allowed),
      [false, false, true, false],
    )
  })
})
