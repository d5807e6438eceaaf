import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createDocument } from './document.ts'
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
