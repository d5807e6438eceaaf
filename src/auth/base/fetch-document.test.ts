import assert from 'node:assert/strict'
import type { lookup } from 'node:dns'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, it } from 'node:test'
import {
  computeFreshForMs,
  createDocumentFetcher,
  isPrivateAddress,
  type OutgoingPolicy,
} from './fetch-document.ts'

describe('isPrivateAddress', () => {
  const PRIVATE =
    '127.0.0.1 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 255.255.255.255 198.18.0.1 ::1 :: fe80::1 fc00::1 fd12::1 ff02::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::7f00:1 2001:db8::1 2002:7f00:1:: nonsense'
  for (const address of PRIVATE.split(' '))
    it(`is true for ${address}`, () => {
      assert.equal(isPrivateAddress(address), true)
    })
  for (const address of ['8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2a00:1450::1'])
    it(`is false for ${address}`, () => {
      assert.equal(isPrivateAddress(address), false)
    })
})

describe('computeFreshForMs', () => {
  const cases: readonly (readonly [Record<string, string>, number])[] = [
    [{}, 60_000],
    [{ 'cache-control': 'max-age=30' }, 30_000],
    [{ 'cache-control': 'public, Max-Age="30"' }, 30_000],
    [{ 'cache-control': 'max-age=30', age: '10' }, 20_000],
    [{ 'cache-control': 'max-age=30', age: '60' }, 0],
    [{ 'cache-control': 'max-age=0' }, 0],
    [{ 'cache-control': 'no-store, max-age=30' }, 0],
    [{ 'cache-control': 'no-cache' }, 0],
    [{ 'cache-control': 'private' }, 0],
    [{ 'cache-control': 'max-age=99999999' }, 86_400_000],
    [{ expires: new Date(90_000).toUTCString() }, 80_000],
    [{ expires: '0' }, 0],
  ]
  for (const [headers, expected] of cases)
    it(`is ${expected} for ${JSON.stringify(headers)}`, () => {
      assert.equal(computeFreshForMs(new Headers(headers), 10_000), expected)
    })
})

describe('createDocumentFetcher', () => {
  const servers: Server[] = []
  const fetchers: { close(): Promise<void> }[] = []
  after(async () => {
    await Promise.all(fetchers.map(fetcher => fetcher.close()))
    for (const server of servers) server.close()
  })

  async function serve(listener: RequestListener): Promise<number> {
    const server = createServer(listener)
    servers.push(server)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as AddressInfo).port
  }
  function fetcher(policy: Partial<OutgoingPolicy>) {
    const reasons: string[] = []
    const made = createDocumentFetcher({
      privateAllowed: false,
      privateHosts: [],
      privateUrl: 'http://app.example/jwks',
      clock: () => 0,
      onFailure: reason => reasons.push(reason),
      ...policy,
    })
    fetchers.push(made)
    return { fetchDocument: made.fetchDocument, reasons }
  }
  // Fixed addresses: those of a real resolver would depend on the network.
  const resolving = (address: string) =>
    ((_host: string, _options: object, done: (error: null, all: object[]) => void) =>
      done(null, [{ address, family: address.includes(':') ? 6 : 4 }])) as unknown as typeof lookup

  it('fetches JSON and its cache time, by a GET that accepts JSON', async () => {
    let seen: unknown
    const port = await serve((request, response) => {
      seen = [request.method, request.headers.accept]
      response.setHeader('cache-control', 'max-age=7').end('{"keys":[]}')
    })
    const { fetchDocument } = fetcher({ privateAllowed: true })
    const found = await fetchDocument(`http://127.0.0.1:${port}/jwks`)
    assert.deepEqual(found, { json: { keys: [] }, freshForMs: 7000 })
    assert.deepEqual(seen, ['GET', 'application/json'])
  })

  it('connects to no private address, whether it is literal, resolved from a name, or in another notation (CLIENT-8)', async () => {
    let asked = 0
    const port = await serve((_request, response) => {
      asked += 1
      response.end('{}')
    })
    const addresses = [
      `https://127.0.0.1:${port}/`,
      `https://[::1]:${port}/`,
      `https://[::ffff:127.0.0.1]:${port}/`,
      `https://2130706433:${port}/`,
      `https://0x7f.1:${port}/`,
      `https://name.example:${port}/`,
      'https://169.254.169.254/latest/meta-data',
    ]
    for (const address of addresses) {
      const { fetchDocument, reasons } = fetcher({ lookup: resolving('127.0.0.1') })
      assert.equal(await fetchDocument(address), undefined, address)
      assert.deepEqual(reasons, ['the address is private'], address)
    }
    assert.equal(asked, 0)
  })

  it('uses http only for the listed hosts', async () => {
    const port = await serve((_request, response) => response.end('{}'))
    const strict = fetcher({ lookup: resolving('127.0.0.1') })
    assert.equal(await strict.fetchDocument('http://name.example/'), undefined)
    assert.deepEqual(strict.reasons, ['the URL is not https'])
    const listing = fetcher({ privateHosts: ['127.0.0.1'] })
    assert.ok(await listing.fetchDocument(`http://127.0.0.1:${port}/`))
    assert.equal(await listing.fetchDocument(`http://localhost:${port}/`), undefined)
  })

  it('follows no redirect, and accepts only a 200 with JSON of limited size (CLIENT-8)', async () => {
    const answers: readonly RequestListener[] = [
      (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(),
      (_request, response) => response.writeHead(404).end('{}'),
      (_request, response) => response.end('<html>'),
      (_request, response) => response.end(JSON.stringify({ keys: ['x'.repeat(300_000)] })),
      (request, _response) => void request.socket.destroy(),
    ]
    for (const answer of answers) {
      const { fetchDocument } = fetcher({ privateAllowed: true })
      assert.equal(await fetchDocument(`http://127.0.0.1:${await serve(answer)}/`), undefined)
    }
  })
})
