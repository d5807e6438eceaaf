import type { TObject, TSchema } from 'typebox'
import type { Sealer } from '../../../store/index.ts'
import type { Html } from '../../../web/ui/index.ts'
import type { Controls } from '../../base/context.ts'
import type { Parameters } from '../../base/request.ts'
import type { Admin, AdminFailure, AdminOperation } from '../base/action.ts'
import type { SubjectColumns } from './columns.ts'
import type { AdminCall } from './endpoint.ts'
import type { List } from './list.ts'
import type { AdminRequest, Answer } from './page/route.ts'
import type { AdminPage } from './page/shell.ts'

/** Who asks, on a page or by the API. */
export type AdminCaller = Pick<AdminCall, 'admin' | 'context'>

/** The page on which an administrator confirms an operation. */
export interface OperationQuestion<Row = never> {
  title(name: string): string
  readonly text: string | ((row: Row) => Html | string)
  readonly button: string
  /** It ends the access of apps: the page says how much. */
  readonly endsAccess?: true
  /** False: it can be undone. Otherwise its button and the link to its page are red. */
  readonly isDangerous?: false
}

/** What some operations need. On the command line, `controls` changes nothing. */
export interface OperationServer {
  readonly openSealer: () => Sealer
  readonly controls: Controls
}

/** An operation on one row of a subject, or on all of them. The API, the pages and the command line have it if they have words for it. */
export interface RowOperation<Row, Target, Changed, Input = object> extends Pick<AdminOperation, 'signIn'> {
  readonly isOnAll?: true
  /** The verb of its record, if it performs another operation. */
  readonly recordedAs?: string
  /** If it is an operation of another subject. */
  readonly operation?: AdminOperation
  readonly api?: {
    readonly title: string
    readonly description?: string
    /** The members of the body, or of the query of a DELETE. */
    readonly input?: TObject
    /** By default that of the subject. */
    readonly result?: TSchema
    readonly method?: 'DELETE' | 'PATCH'
    readonly status?: 201
    /** Below the path of the row, or of the list; by default the verb. */
    readonly path?: string
  }
  /** The last part of the path of its page; by default the verb. */
  readonly path?: string
  readonly page?: OperationQuestion<Row>
  /** The list has a button for it instead of a page that asks. */
  readonly isAtOnce?: true
  /** The link to that page, on the page of the row. */
  readonly link?: { readonly text: string; readonly isMain?: true; isOffered(row: Row): boolean }
  /** The words of a command. */
  readonly command?: {
    /** The text of `--help` below the usage. */
    readonly help?: string
    /** What it prints: `Disabled` becomes `Disabled app growth`. */
    readonly done: string | ((changed: Changed) => string)
    /** What it could not do; by default the verb and the noun. */
    readonly act?: string
  }
  perform?(
    admin: Admin,
    target: Target,
    input: Input,
    server: OperationServer,
  ): Promise<Changed | AdminFailure>
}

export type RowOperations<Row, Target, Changed, Input = object> = Readonly<
  Record<string, RowOperation<Row, Target, Changed, Input>>
>

/** What is administered. Its pages, endpoints and commands follow from it. */
export interface Subject<Row, Target, Changed, Listed = Row> {
  /** Begins the names of operations, in the audit trail and of commands: `client`. */
  readonly name: string
  readonly lists?: readonly List<Listed>[]
  readonly operations: RowOperations<Row, Target, Changed>
  toTarget(id: string): Target
  /** Finds the row of a path. */
  find?(caller: AdminCaller, id: string): Promise<Row | AdminFailure>
  readonly api?: {
    /** Of a row. */
    readonly path: `/${string}/:${string}`
    /** The response to a request for one row. */
    readonly one?: {
      readonly title: string
      readonly result: TSchema
      describe(row: Row, caller: AdminCaller): unknown
    }
    /** The response to an operation, by default the id of the row. */
    readonly result?: TSchema
    describe?(changed: Changed, caller: AdminCaller, verb: string): unknown
  }
  readonly pages?: SubjectPages<Row, Changed>
  /** `noun`: in the words of a command. `option`: by which it names a row, unless it is on all. */
  readonly command?: {
    readonly noun: string
    readonly option?: string
    toTarget?(text: string): Target
    /** Finds the row that the command `show` prints. */
    find?(admin: Admin, text: string): Promise<Row | AdminFailure>
  }
}

export interface SubjectPages<Row, Changed> {
  readonly section: AdminPage['section']
  /** Of a row. */
  readonly path: `/${string}:${string}`
  /** The page of all rows, by default above those of rows. */
  readonly home?: `/${string}`
  /** Why there is no page of a row, if its id is not to be repeated. */
  readonly unknown?: AdminFailure
  readonly details?: Details<Row>
  /** The row, with what the page of an operation needs, or why the operation is impossible. */
  prepare?(request: AdminRequest, row: Row, verb: string | undefined): Promise<Row | AdminFailure>
  getName?(row: Row): string
  listFacts?(
    request: AdminRequest,
    row: Row,
    page: OperationQuestion<Row>,
  ): Promise<readonly (readonly [name: string, value: Html | string])[]>
  /** The page to which somebody returns who does not confirm; by default that of the row, or of all. */
  getBack?(request: AdminRequest, row: Row): string
  /** The page after an operation. */
  show(
    request: AdminRequest,
    changed: Changed,
    context: { readonly row?: Row | undefined; readonly verb: string },
  ): Answer | AdminFailure | Promise<Answer | AdminFailure>
  /** What an operation has to be told, by verb. */
  readonly forms?: Readonly<Record<string, Form<Row>>>
}

/** The page of one row: what its columns say about it, the links to its operations, and more. */
interface Details<Row> {
  readonly columns: SubjectColumns<Row>
  title(row: Row): string
  lead?(row: Row): AdminPage['lead']
  readonly done?: Readonly<Record<string, string>>
  /** Beside the title. */
  readonly actions?: Html
  /** Links to its audit records, by their filters. */
  listRecords?(row: Row): readonly (readonly [text: string, filter: Readonly<Record<string, string>>])[]
  more?(request: AdminRequest, row: Row): Promise<MoreDetails>
}

/** What its columns do not say. */
export interface MoreDetails {
  readonly above?: Html | false
  readonly facts?: readonly (readonly [label: string, value: Html])[]
  readonly below?: Html | false
}

export interface Form<Row> {
  render(request: AdminRequest, row: Row): Html | undefined
  read(form: Parameters): object
}
