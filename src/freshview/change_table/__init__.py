"""Change tables and the refresh operator. [GM06]"""
