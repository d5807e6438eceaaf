import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createDocument, serveDocuments } from './document.ts'
import { useServers } from './testing/make-server.ts'

const make = useServers()

it('a document is serialized once, however often it is sent (HTTP-12)', async () => {
  let times = 0
  const send = createDocument({ toJSON: () => ({ times: ++times }) })
  const { app } = await make()
  app.get('/document', (_request, reply) => send(reply))
  for (let request = 0; request < 3; request++) {
    const { body, headers } = await app.inject('/document')
    assert.deepEqual([body, headers['content-type']], ['{"times":1}', 'application/json; charset=utf-8'])
  }
})

it('public documents are sent to pages of every origin, and may be cached', async () => {
  const { app } = await make()
  serveDocuments(app, { '/.well-known/one': { name: 'one' } })
  const { body, headers } = await app.inject('/.well-known/one')
  assert.equal(body, '{"name":"one"}')
  assert.equal(headers['access-control-allow-origin'], '*')
  assert.equal(headers['cache-control'], 'public, max-age=300')
})
