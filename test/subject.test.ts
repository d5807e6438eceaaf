import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { Type } from 'typebox'
import { createAuditor, findRecords } from '../src/audit/index.ts'
import { failAdmin, recordAction } from '../src/auth/admin/base/action.ts'
import { defineArea } from '../src/auth/admin/subject/area.ts'
import { describeColumns, toJson } from '../src/auth/admin/subject/columns.ts'
import { defineList } from '../src/auth/admin/subject/list.ts'
import type { Subject } from '../src/auth/admin/subject/subject.ts'
import { TestAuthServer } from '../src/auth/testing/test-auth-server.ts'
import type { Command } from '../src/cli/command.ts'
import { defineListing } from '../src/cli/commands/list.ts'
import { defineOperation } from '../src/cli/commands/operation.ts'
import { openStore, sha256 } from '../src/store/index.ts'

interface Door {
  readonly id: string
  readonly colour: string
}

const all: readonly Door[] = [
  { id: 'north', colour: 'red' },
  { id: 'south', colour: 'blue' },
]

const FILTERS = {
  colour: {
    schema: Type.Union([Type.Literal('red'), Type.Literal('blue')]),
    about: 'The colour of the door.',
    label: 'Colour of the door',
  },
}

/** One column, one filter. */
const doors = defineList<Door, typeof FILTERS>({
  columns: {
    colour: { of: 'colour', schema: Type.String(), page: 'Colour', detail: 'Colour', table: 'COLOUR' },
  },
  filters: FILTERS,
  read: async (_admin, { colour }) => ({
    items: all.filter(door => colour === undefined || door.colour === colour),
    next: undefined,
  }),
  api: { path: '/doors', title: 'All doors' },
  page: {
    section: 'keys',
    path: '/doors',
    title: 'Doors',
    caption: 'All doors',
    notFound: { title: 'No door', text: 'No door has this colour.' },
  },
  csv: { path: '/doors.csv', operation: { name: 'door export', signIn: 'never asks', isForAuditors: true } },
  command: { name: 'door list', nouns: 'doors' },
})

/** One operation, which gives access: it asks for a recent sign-in. */
const door: Subject<Door, string, Door> = {
  name: 'door',
  lists: [doors],
  operations: {
    open: {
      signIn: 'asks',
      api: { title: 'Open a door' },
      page: { title: name => `Open the ${name} door?`, text: 'Anybody can enter.', button: 'Open door' },
      command: { done: 'Opened' },
      async perform(admin, id) {
        const found = all.find(one => one.id === id)
        if (!found) return failAdmin('key-unknown', { kid: id })
        const operation = { name: 'door open', signIn: 'asks' } as const
        return (await recordAction(admin, { operation, target: id })) ?? found
      },
    },
  },
  toTarget: id => id,
  find: async (_, id) => all.find(one => one.id === id) ?? failAdmin('key-unknown', { kid: id }),
  api: {
    path: '/doors/:id',
    one: {
      title: 'A door',
      result: describeColumns(doors.columns),
      describe: one => toJson(doors.columns, one),
    },
    result: Type.Object({ colour: Type.String() }),
    describe: ({ colour }) => ({ colour }),
  },
  pages: {
    section: 'keys',
    path: '/doors/:id',
    details: {
      columns: doors.columns,
      title: ({ id }) => `The ${id} door`,
      listRecords: ({ id }) => [['Records of this door', { target: id }]],
    },
    getName: ({ id }) => id,
    show: () => '/doors',
  },
  command: { noun: 'door', option: 'id' },
}

const area = defineArea(door)

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const url = `sqlite:${join(folder, 'sallyport.db')}`

async function run(command: Command | undefined, values: Readonly<Record<string, readonly string[] | true>>) {
  const printed: string[] = []
  const output = { write: (text: string) => printed.push(text) }
  const io = { stdin: Readable.from([]), stdout: output, stderr: output, cwd: folder }
  assert.ok(command)
  await command.run({ values, positionals: [], help: '' }, { ...io, env: { SMART_DATABASE_URL: url } })
  return printed.join('')
}

describe('a subject with one column, one filter and one operation', () => {
  let auth: TestAuthServer
  let headers = {}
  before(async () => {
    const store = await openStore(url)
    auth = await TestAuthServer.open(store, {
      audit: createAuditor({ store }),
      administration: [area],
    })
    await auth.addUser('root', { admin: true })
    await auth.addUser('eye', { auditor: true })
    await auth.addClient({
      client_id: 'program',
      auth_method: 'client_secret',
      secret_hash: sha256('top'),
      scope: 'sallyport/admin',
    })
    const secret = { client_id: 'program', client_secret: 'top', scope: 'sallyport/admin' }
    const token = (await auth.requestToken({ ...secret, grant_type: 'client_credentials' })).json()
    headers = { authorization: `Bearer ${token.access_token}` }
  })
  after(() => auth.store.close())
  const findLast = async () => (await findRecords(auth.store, { limit: 1 }))[0]?.request

  it('has them on its pages and in its file', async () => {
    const browser = await auth.logIn('root')
    const { body } = await browser.get('/admin/doors')
    assert.match(body, /<th[^>]*>Colour<\/th>[\s\S]*red[\s\S]*blue/)
    assert.match(body, /Colour of the door<\/label><select[^>]*name="colour"[\s\S]*value="red"/)
    const blue = (await browser.get('/admin/doors?colour=blue')).body
    assert.match(blue, /<th role="rowheader" scope="row">blue/)
    assert.doesNotMatch(blue, /<th role="rowheader" scope="row">red/)
    assert.equal((await browser.get('/admin/doors?colour=green')).statusCode, 400)
    assert.match((await browser.get('/admin/doors/north')).body, /<dt>Colour<\/dt><dd>red<\/dd>/)
    const locked = (await browser.get('/admin/clinicians?locked=true')).body
    assert.match(locked, /No user found[\s\S]*Nothing matches these filters\./)
    assert.equal((await browser.get('/admin/doors.csv?colour=red')).body, 'colour\r\nred\r\n')
    assert.equal(await findLast(), 'door export')
  })

  it('has them in the API and its OpenAPI document', async () => {
    const browser = auth.openBrowser()
    const { paths } = (await browser.get('/admin/api/openapi.json')).json()
    const { parameters, responses } = paths['/admin/api/doors'].get
    assert.ok(parameters.some(({ name }: { name: string }) => name === 'colour'))
    const { items } = responses[200].content['application/json'].schema.properties
    assert.deepEqual(items.items.properties, { colour: { type: 'string' } })
    assert.equal(paths['/admin/api/doors/{id}/open'].post.summary, 'Open a door')
    const read = async (query: string) => (await browser.get(`/admin/api/doors${query}`, headers)).json()
    assert.deepEqual(await read('?colour=red'), { items: [{ colour: 'red' }] })
    assert.match(
      (await read('?colour=green')).error_description,
      /colour is not valid: expected one of red, blue/,
    )
    const opened = await auth.app.inject({ method: 'POST', url: '/admin/api/doors/south/open', headers })
    assert.deepEqual([opened.statusCode, opened.json()], [200, { colour: 'blue' }])
    assert.equal(await findLast(), 'door open south')
  })

  it('asks on a page before the operation, by its rules', async () => {
    const browser = await auth.logIn('root')
    assert.match((await browser.get('/admin/doors/north/open')).body, /Open the north door\?[\s\S]*Open door/)
    assert.equal((await browser.get('/admin/doors/east/open')).statusCode, 404)
    assert.equal((await browser.post('/admin/doors/north/open', {})).headers.location, '/admin/doors')
    assert.equal(await findLast(), 'door open north')
    assert.equal((await (await auth.logIn('eye')).get('/admin/doors/north/open')).statusCode, 403)
    assert.equal((await (await auth.logIn('eye')).get('/admin/doors')).statusCode, 200)
    auth.time.now += 3_600_000
    assert.equal((await browser.get('/admin/doors/north/open')).statusCode, 302)
  })

  it('has them as commands', async () => {
    const [list] = (area.lists ?? []).map(defineListing)
    const [open] = (area.commands ?? []).map(defineOperation)
    assert.match(list?.usage ?? '', /door list \[--colour <which>\][\s\S]*the colour of the door: red, blue/)
    assert.equal(await run(list, {}), 'COLOUR\nred\nblue\n')
    assert.equal(await run(list, { colour: ['blue'] }), 'COLOUR\nblue\n')
    assert.deepEqual(JSON.parse(await run(list, { json: true })).items, [
      { colour: 'red' },
      { colour: 'blue' },
    ])
    await assert.rejects(run(list, { colour: ['green'] }), {
      message: 'Cannot use --colour: expected one of red, blue',
      exitCode: 2,
    })
    assert.match(open?.usage ?? '', /door open --id <id>/)
    assert.equal(await run(open, { id: ['north'] }), 'Opened door north\n')
  })
})
