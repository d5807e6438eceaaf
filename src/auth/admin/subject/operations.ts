import type { TObject, TSchema } from 'typebox'
import { NONE } from '../../../endpoint/index.ts'
import type { Sealer } from '../../../store/index.ts'
import type { Html } from '../../../web/ui/index.ts'
import type { Parameters } from '../../base/request.ts'
import { type Admin, AdminFailure, type AdminOperation } from '../base/action.ts'
import { type AdminEndpoint, defineEndpoint } from '../base/endpoint.ts'
import type { ActionLink, CommandWords, OperationQuestion } from '../base/operation.ts'
import type { AdminRequest, AdminRoute, Answer } from './page/route.ts'
import { type Confirmation, defineAction } from './page/shell.ts'

/** An operation on one row of a subject, or on all of them. The API, the pages and the command line have it if they have words for it. */
export interface RowOperation<Row, Target, Changed, Input = object> extends Omit<AdminOperation, 'name'> {
  readonly isOnAll?: true
  /** The verb of its record, if it performs another operation. */
  readonly recordedAs?: string
  readonly api?: {
    readonly title: string
    readonly description?: string
    /** The members of the body, or of the query of a DELETE. */
    readonly input?: TObject
    /** By default that of the subject. */
    readonly result?: TSchema
    readonly method?: 'DELETE'
    /** Below the path of the row, or of the list; by default the verb. */
    readonly path?: string
  }
  /** The last part of the path of its page; by default the verb. */
  readonly path?: string
  readonly page?: OperationQuestion<Row>
  readonly link?: ActionLink<Row>
  readonly command?: CommandWords
  perform?(
    admin: Admin,
    target: Target,
    input: Input,
    openSealer: () => Sealer,
  ): Promise<Changed | AdminFailure>
}

export type RowOperations<Row, Target, Changed, Input = object> = Readonly<
  Record<string, RowOperation<Row, Target, Changed, Input>>
>

/** What operations change. */
export interface Subject<Row, Target, Changed> {
  /** Begins the names of operations, in the audit trail and of commands: `client`. */
  readonly name: string
  readonly operations: RowOperations<Row, Target, Changed>
  toTarget(id: string): Target
  readonly api?: {
    /** Of a row. */
    readonly path: `/${string}/:${string}`
    readonly result: TSchema
    describe(changed: Changed): unknown
  }
  readonly pages?: {
    readonly section: Confirmation['section']
    /** Of a row. */
    readonly path: `/${string}/:${string}`
    /** The row of the path, if the operation is possible. */
    find(request: AdminRequest, verb: string): Promise<Row | AdminFailure>
    getName?(row: Row): string
    listFacts?(request: AdminRequest, row: Row, page: OperationQuestion<Row>): Promise<Confirmation['facts']>
    getBack(request: AdminRequest, row: Row): string
    /** The page after an operation. */
    show(
      request: AdminRequest,
      changed: Changed,
      context: { readonly row: Row; readonly verb: string },
    ): Answer | AdminFailure
    /** What an operation has to be told, by verb. */
    readonly forms?: Readonly<Record<string, Form<Row>>>
  }
  /** `noun`: in the words of a command. `option`: by which it names a row. */
  readonly command?: { readonly noun: string; readonly option: string; toTarget?(text: string): Target }
}

export interface Form<Row> {
  render(request: AdminRequest, row: Row): Html | undefined
  read(form: Parameters): object
}

function listPossible<Row, Target, Changed>({ name, operations }: Subject<Row, Target, Changed>) {
  return Object.entries(operations).flatMap(([verb, { perform, ...operation }]) => {
    const { signIn, isForAuditors } = operation
    const named: AdminOperation = { name: `${name} ${verb}`, signIn, ...(isForAuditors && { isForAuditors }) }
    return perform ? [{ ...operation, verb, perform, operation: named }] : []
  })
}

export function defineOperationEndpoints<Row, Target, Changed>(
  subject: Subject<Row, Target, Changed>,
): readonly AdminEndpoint[] {
  const own = subject.api
  if (!own) return []
  return listPossible(subject).flatMap(({ verb, operation, api, isOnAll, perform }) => {
    if (!api) return []
    const { title, description, method = 'POST', input = NONE, path = verb, result = own.result } = api
    const of = isOnAll ? own.path.replace(/\/:\w+$/, '') : own.path
    return [
      defineEndpoint<TObject, TObject>({
        method,
        path: `/${[of.slice(1), path].filter(part => part !== '').join('/')}`,
        title,
        ...(description !== undefined && { description }),
        ...(method === 'POST' ? { body: input } : input !== NONE && { query: input }),
        operation,
        result,
        async handle({ admin, context, params, query, body }) {
          const target = subject.toTarget(Object.values(params)[0] ?? '')
          const changed = perform(admin, target, { ...query, ...body }, () => context.sealer)
          return continueWith(changed, one => own.describe(one))
        },
      }),
    ]
  })
}

/** The pages on which operations are confirmed. */
export function defineOperationRoutes<Row, Target, Changed>(
  subject: Subject<Row, Target, Changed>,
): readonly AdminRoute[] {
  const { pages } = subject
  if (!pages) return []
  return listPossible(subject).flatMap(({ verb, operation, path = verb, page, isOnAll, perform }) => {
    if (!page) return []
    const form = pages.forms?.[verb]
    return defineAction({
      path: `${isOnAll ? pages.path.replace(/\/:\w+$/, '') : pages.path}/${path}`,
      operation,
      ask: request =>
        continueWith(pages.find(request, verb), async row => ({
          ...page,
          section: pages.section,
          title: page.title(pages.getName?.(row) ?? ''),
          text: typeof page.text === 'string' ? page.text : page.text(row),
          facts: await pages.listFacts?.(request, row, page),
          back: pages.getBack(request, row),
          fields: form?.render(request, row),
        })),
      perform: request =>
        continueWith(pages.find(request, verb), row => {
          const { admin, context, params, form: sent } = request
          const target = subject.toTarget(Object.values(params)[0] ?? '')
          const changed = perform(admin, target, form?.read(sent) ?? {}, () => context.sealer)
          return continueWith(changed, one => pages.show(request, one, { row, verb }))
        }),
    })
  })
}

function continueWith<Value, Next>(
  promised: Promise<Value | AdminFailure>,
  next: (value: Value) => Next | Promise<Next>,
): Promise<Next | AdminFailure> {
  return promised.then(value => (value instanceof AdminFailure ? value : next(value)))
}

/** An operation on one row that is also a command. */
export interface OperationCommand extends CommandWords {
  readonly name: string
  readonly noun: string
  readonly option: string
  perform(admin: Admin, text: string, openSealer: () => Sealer): Promise<unknown>
}

export function listOperationCommands<Row, Target, Changed>(
  subject: Subject<Row, Target, Changed>,
): readonly OperationCommand[] {
  const { command: own, toTarget } = subject
  if (!own) return []
  return listPossible(subject).flatMap(({ operation, command, perform }) =>
    command
      ? [
          {
            ...command,
            name: operation.name,
            noun: own.noun,
            option: own.option,
            perform: (admin, text, open) => perform(admin, (own.toTarget ?? toTarget)(text), {}, open),
          },
        ]
      : [],
  )
}
