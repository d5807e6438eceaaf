import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { bearerOf, type TestCaller } from './guarded-fhir.ts'

interface FileItem {
  readonly type?: string
  readonly url: string
  readonly count?: number
  readonly continuesInFile?: string
}

export interface Manifest {
  readonly transactionTime: string
  readonly request: string
  readonly requiresAccessToken: boolean
  readonly outputOrganizedBy?: string
  readonly link?: readonly { readonly relation: string; readonly url: string }[]
  readonly output: readonly FileItem[]
  readonly deleted: readonly FileItem[]
  readonly error: readonly FileItem[]
}

export interface BulkReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  /** The text of the first issue. */
  readonly why: string | undefined
}

type Line = { readonly resourceType: string; readonly id?: string } & Readonly<Record<string, unknown>>

/** A backend service that exports. */
export function createBulkClient(app: FastifyInstance, caller: TestCaller, wait: (seconds: number) => void) {
  async function ask(
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    { headers = {}, body }: { headers?: Readonly<Record<string, string>>; body?: object } = {},
  ): Promise<BulkReply> {
    const { pathname, search } = new URL(url, 'http://localhost/fhir/')
    const reply = await app.inject({
      method,
      url: pathname + search,
      headers: {
        authorization: bearerOf(caller),
        ...(body && { 'content-type': 'application/fhir+json' }),
        ...headers,
      },
      ...(body && { payload: JSON.stringify(body) }),
    })
    const isJson = /^application\/(?:fhir\+)?json/.test(String(reply.headers['content-type']))
    const why = isJson ? reply.json().issue?.[0]?.details?.text : undefined
    return { status: reply.statusCode, headers: reply.headers, text: reply.body, why }
  }

  async function start(line: string, more?: Parameters<typeof ask>[2]): Promise<string> {
    const [method = 'GET', url = ''] = line.split(' ')
    const reply = await ask(method === 'POST' ? 'POST' : 'GET', url, more)
    assert.equal(reply.status, 202, reply.text)
    return String(reply.headers['content-location'])
  }

  async function poll(status: string): Promise<Manifest> {
    const reply = await ask('GET', status)
    if (reply.status === 202) {
      wait(Number(reply.headers['retry-after']))
      return poll(status)
    }
    assert.equal(reply.status, 200, reply.text)
    return JSON.parse(reply.text)
  }

  async function download(url: string): Promise<readonly Line[]> {
    const reply = await ask('GET', url)
    assert.equal(reply.status, 200, reply.text)
    assert.equal(reply.headers['content-type'], 'application/fhir+ndjson')
    return reply.text
      .split('\n')
      .filter(Boolean)
      .map(it => JSON.parse(it))
  }

  /** Everything in the files of an export, as `Type/id`. */
  async function list(manifest: Manifest): Promise<readonly string[]> {
    const found: string[] = []
    for (const { url, type, count } of manifest.output) {
      const lines = await download(url)
      assert(type === undefined || lines.every(it => it.resourceType === type))
      if (count !== undefined) assert.equal(lines.length, count)
      found.push(...lines.map(it => `${it.resourceType}/${it.id}`))
    }
    return found.sort()
  }

  return {
    ask,
    start,
    poll,
    download,
    list,
    run: async (line: string, more?: Parameters<typeof ask>[2]) => poll(await start(line, more)),
  }
}
