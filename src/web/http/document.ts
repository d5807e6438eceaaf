import type { FastifyReply } from 'fastify'

/** Sends a JSON document that does not change while the server runs. It is serialized once. */
export function createDocument(value: object): (reply: FastifyReply) => FastifyReply {
  const body = Buffer.from(JSON.stringify(value))
  return reply => reply.type('application/json; charset=utf-8').send(body)
}
