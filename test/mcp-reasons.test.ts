import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { explainReason } from '../src/auth/words/explanation.ts'
import { type CallReason, describeFailed, FHIR_REASONS } from '../src/fhir/index.ts'
import { TOOLS } from '../src/mcp/index.ts'
import { startMcp } from './support/mcp.ts'

const READER = { scope: 'launch/patient patient/*.rs', patient: 'ann', sub: 'c-1' }
const PROPOSER = { scope: 'launch/patient patient/*.cruds', patient: 'ann', sub: 'c-1' }
const SECRET = 'Mustermann'

const mcp = await startMcp([{ resourceType: 'Patient', id: 'ann' }], { callsPerMinute: 40 })
after(() => mcp.close())

interface Reply {
  readonly status: number
  readonly text: string
}

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }

async function send(message: unknown, claims: object, headers?: object): Promise<Reply> {
  const { status, body } = await mcp.send(message, claims, headers)
  return { status, text: JSON.stringify(body) }
}

async function request(method: string, params: object, claims: object, headers?: object): Promise<Reply> {
  const { status, body } = await mcp.request(method, params, claims, headers)
  return { status, text: JSON.stringify(body) }
}

const call = (name: string, given: object, claims: object) =>
  request('tools/call', { name, arguments: given }, claims)

const listOfLaunch = async (launch: string) =>
  (await mcp.listRecords(200)).filter(({ launch_id }) => launch_id === launch)

const propose = (claims: object) =>
  call('propose_change', { action: 'delete', reference: 'Patient/ann', reason: SECRET }, claims)

interface Way {
  happen(claims: object): Promise<Reply>
  /** Undefined: that of the reason. */
  readonly status?: number
  readonly claims?: object
  readonly tool?: string
  readonly facts?: object
}

/** What each reason needs to happen. A fault of a tool is a result, which the model reads. */
const WAYS: Readonly<Record<CallReason, Way>> = {
  'origin-refused': { happen: claims => send(ping, claims, { origin: 'http://evil.test' }) },
  'message-too-large': {
    happen: claims => send(`"${SECRET.repeat(30_000)}"`, claims),
    facts: { limit: 262_144 },
  },
  'message-of-other-type': { happen: claims => send(SECRET, claims, { 'content-type': 'text/plain' }) },
  'message-not-json': { happen: claims => send(`{${SECRET}`, claims) },
  'message-malformed': { happen: claims => send([SECRET], claims) },
  'message-headers-differ': {
    happen: claims => request('tools/list', {}, claims, { 'mcp-method': SECRET }),
  },
  'mcp-version-unsupported': { happen: claims => send(ping, claims, { 'mcp-protocol-version': SECRET }) },
  'mcp-method-unknown': { happen: claims => request(SECRET, {}, claims) },
  'mcp-parameters-wrong': { happen: claims => request('prompts/get', { name: SECRET }, claims) },
  'tool-unknown': {
    happen: async claims => {
      await call(SECRET, {}, claims)
      return call('propose_change', {}, claims)
    },
    tool: 'propose_change',
  },
  'tool-arguments-wrong': {
    happen: claims => call('search', { [SECRET]: SECRET }, claims),
    status: 200,
    tool: 'search',
  },
  'tool-misused': {
    happen: claims => call('read', { reference: `${SECRET} ${SECRET}` }, claims),
    status: 200,
    tool: 'read',
  },
  'proposals-too-many': {
    async happen(claims) {
      for (let made = 0; made < 20; made += 1) assert.doesNotMatch((await propose(claims)).text, /isError/)
      return propose(claims)
    },
    claims: PROPOSER,
    status: 200,
    tool: 'propose_change',
    facts: { most: 20 },
  },
  'calls-too-many': {
    async happen(claims) {
      for (let made = 0; made < 40; made += 1) assert.equal((await send(ping, claims)).status, 200)
      return send(ping, claims)
    },
  },
}

describe('a message that makes no FHIR request', () => {
  for (const [name, way] of Object.entries(WAYS))
    it(`is recorded with the reason for which it is refused, which is explained: ${name} (MCP-5)`, async () => {
      const reason = name as CallReason
      const { happen, status, claims = READER, tool, facts } = way
      const reply = await happen({ ...claims, jti: `${reason}.token` })
      assert.equal(reply.status, status ?? FHIR_REASONS[reason].status)
      assert.match(reply.text, status === 200 ? /"isError":true/ : /"error":\{"code":-32/)
      const [record] = await mcp.listRecords(1)
      assert(record)
      assert.deepEqual(
        [record.interaction, record.allowed, record.status, record.method, record.request],
        ['call', false, FHIR_REASONS[reason].status, 'POST', 'mcp'],
      )
      assert.deepEqual([record.client_id, record.subject, record.launch_id], ['app', 'c-1', reason])
      assert.deepEqual(JSON.parse(record.details ?? '{}'), {
        reason,
        ...(facts && { facts }),
        ...(tool !== undefined && { tool }),
      })
      assert.equal(record.reason, describeFailed({ reason, facts: { ...facts } }))
      assert.doesNotMatch(JSON.stringify(await mcp.listRecords(100)), new RegExp(SECRET))
      const explained = explainReason({ reason, facts: { ...facts } })
      assert(explained)
      assert.doesNotMatch(`${explained.cause} ${explained.action}`, /[{}]/)
    })

  it('names the limit of a message', async () => {
    assert.match((await send(`"${SECRET.repeat(30_000)}"`, READER)).text, /at most 262144 bytes/)
  })

  it('is refused for its token first', async () => {
    const { status, headers } = await mcp.send(`"${SECRET.repeat(30_000)}"`, undefined)
    assert.deepEqual([status, 'www-authenticate' in headers], [401, true])
  })

  it('is counted beyond the limit of calls, and does not fill the trail', async () => {
    const claims = { ...READER, jti: 'flood.token', client_id: 'flooder', sub: 'c-2' }
    for (let made = 0; made < 340; made += 1) await send(ping, claims)
    const records = (await mcp.listRecords(100)).filter(({ subject }) => subject === 'c-2')
    assert.deepEqual(
      records.map(({ status, client_id, repeats }) => [status, client_id, repeats]),
      [
        [429, 'flooder', 299],
        [429, 'flooder', null],
      ],
    )
  })

  it('is recorded if it is the call of a tool that needs none, and other messages are not (MCP-5)', async () => {
    const claims = { ...PROPOSER, jti: 'list.token' }
    await call('list_proposals', {}, claims)
    for (const method of ['tools/list', 'prompts/list', 'resources/list']) await request(method, {}, claims)
    const [record, ...others] = await listOfLaunch('list')
    assert(record)
    const { interaction, allowed, status, client_id, subject, patient_id, details } = record
    assert.deepEqual(
      [interaction, allowed, status, client_id, subject, patient_id],
      ['call', true, 200, 'app', 'c-1', null],
    )
    assert.deepEqual(JSON.parse(details ?? '{}'), { tool: 'list_proposals' })
    assert.deepEqual(others, [])
  })

  it('and one that makes some has no other record', async () => {
    await call('describe_type', { type: 'Patient' }, { ...READER, jti: 'described.token' })
    const made = await listOfLaunch('described')
    assert.deepEqual(
      made.map(({ interaction }) => interaction),
      ['capabilities'],
    )
  })
})

/** Arguments with which a tool does something. */
const GIVEN: Readonly<Record<string, object>> = {
  get_patient_summary: {},
  search: { type: 'Patient' },
  read: { reference: 'Patient/ann' },
  describe_type: { type: 'Patient' },
  list_types: {},
  propose_change: { action: 'delete', reference: 'Patient/ann', reason: SECRET },
  list_proposals: {},
}

describe('each call of a tool leaves a record with its name (MCP-5)', () => {
  for (const { name } of TOOLS) {
    const record = async (launch: string, given: object, claims: object) => {
      await call(name, given, { ...claims, jti: `${name}-${launch}.token` })
      const records = await listOfLaunch(`${name}-${launch}`)
      for (const { details } of records) assert.equal(JSON.parse(details ?? '{}').tool, name)
      return records.map(({ allowed, status, details }) => [
        allowed,
        status,
        JSON.parse(details ?? '{}').reason,
      ])
    }

    it(`${name}: that succeeds`, async () => {
      const records = await record('done', GIVEN[name] ?? {}, PROPOSER)
      assert.ok(records.length > 0)
      for (const [allowed] of records) assert.equal(allowed, true)
    })

    it(`${name}: with wrong arguments`, async () => {
      assert.deepEqual(await record('wrong', { [SECRET]: SECRET }, PROPOSER), [
        [false, 400, 'tool-arguments-wrong'],
      ])
    })

    if (name !== 'describe_type')
      it(`${name}: without a scope for it`, async () => {
        const claims = { ...READER, scope: 'launch/patient' }
        assert.deepEqual(await record('scope', GIVEN[name] ?? {}, claims), [[false, 400, 'tool-unknown']])
      })
  }

  it('that fails before its first FHIR request', async () => {
    const claims = { ...PROPOSER, client_id: 'broken', jti: 'broken.token' }
    assert.equal((await propose(claims)).status, 200)
    await mcp.store.db
      .updateTable('proposal')
      .set({ change_sealed: 'damaged' })
      .where('client_id', '=', 'broken')
      .execute()
    const { status } = await call('list_proposals', {}, { ...claims, jti: 'failed.token' })
    assert.equal(status, 500)
    const [record, ...others] = await listOfLaunch('failed')
    assert.deepEqual(
      [record?.interaction, record?.status, JSON.parse(record?.details ?? '{}'), others],
      ['call', 500, { tool: 'list_proposals' }, []],
    )
  })
})
