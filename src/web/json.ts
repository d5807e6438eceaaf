import type { FastifyInstance } from 'fastify'
import { findJsonExcess } from '../fhir/index.ts'

/** The code of the error that a body with too much JSON is refused with. */
export const JSON_EXCESS = 'JSON_EXCESS'

/** Parses JSON as fastify does, unless it is nested too deeply: whatever writes it again would overflow the stack. */
export function boundJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body: string, done) => {
    if (findJsonExcess(body))
      done(Object.assign(new Error('Too much JSON'), { statusCode: 400, code: JSON_EXCESS }))
    else parse(request, body, done)
  })
}
