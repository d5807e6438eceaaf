import type { FastifyInstance, FastifyReply } from 'fastify'

/** Sends a JSON document that does not change while the server runs. It is serialized once. */
export function createDocument(value: object): (reply: FastifyReply) => FastifyReply {
  const body = Buffer.from(JSON.stringify(value))
  return reply => reply.type('application/json; charset=utf-8').send(body)
}

/** Serves public documents, by path. */
export function serveDocuments(app: FastifyInstance, documents: Readonly<Record<string, object>>): void {
  for (const [path, document] of Object.entries(documents)) {
    const send = createDocument(document)
    app.get(path, (_request, reply) =>
      send(reply.headers({ 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' })),
    )
  }
}
