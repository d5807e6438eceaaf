import { createServer, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { readPublished } from '../../../../scripts/compile-r4/source.ts'

/** The used part of `@medplum/core`: the copy of the router, which keeps its definitions globally. */
interface Core {
  indexStructureDefinitionBundle(bundle: unknown): void
  indexSearchParameterBundle(bundle: unknown): void
  getStatus(outcome: unknown): number
}

const require = createRequire(import.meta.url)
// By `require` throughout: otherwise the router would have another copy.
const { FhirRouter, MemoryRepository } =
  require('@medplum/fhir-router') as typeof import('@medplum/fhir-router')
const core = createRequire(require.resolve('@medplum/fhir-router'))('@medplum/core') as Core
const bundleOf = (type: string) => ({
  resourceType: 'Bundle',
  entry: readPublished(type).map(resource => ({ resource })),
})
core.indexStructureDefinitionBundle(bundleOf('StructureDefinition'))
core.indexSearchParameterBundle(bundleOf('SearchParameter'))

/** Medplum's router and repository in memory, served over HTTP as they are. */
export async function startMedplum(): Promise<{ readonly url: string; close(): Promise<unknown> }> {
  const router = new FhirRouter()
  const repository = new MemoryRepository()
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://medplum.test')
    const [, , type = '', id = ''] = url.pathname.split('/')
    const isNew = request.method === 'PUT' && !(await exists(repository, type, id))
    const [outcome, resource] = await router.handleRequest(
      {
        method: request.method as 'GET',
        url: request.url?.slice('/r4'.length) || '/',
        pathname: '',
        params: {},
        query: queryOf(url.searchParams),
        body: await bodyOf(request),
        headers: request.headers,
      },
      repository,
    )
    const version = (resource as { meta?: { versionId?: string } } | undefined)?.meta?.versionId
    const status = core.getStatus(outcome)
    // The router does not distinguish a creation from an update.
    response.writeHead(isNew && status === 200 ? 201 : status, {
      'content-type': 'application/fhir+json',
      ...(version !== undefined && { etag: `W/"${version}"` }),
    })
    response.end(JSON.stringify(resource ?? outcome))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/r4`,
    close: () => {
      server.closeAllConnections()
      return new Promise(resolve => server.close(resolve))
    },
  }
}

function exists(
  repository: InstanceType<typeof MemoryRepository>,
  type: string,
  id: string,
): Promise<boolean> {
  return repository.readResource(type as 'Patient', id).then(
    () => true,
    () => false,
  )
}

function queryOf(params: URLSearchParams): Record<string, string | string[]> {
  return Object.fromEntries(
    [...new Set(params.keys())].map(name => {
      const all = params.getAll(name)
      return [name, all.length === 1 ? (all[0] ?? '') : all]
    }),
  )
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  if (text === '') return undefined
  return request.headers['content-type']?.includes('json')
    ? JSON.parse(text)
    : Object.fromEntries(new URLSearchParams(text))
}
